"""Queueing theory as plain functions of floats and arrays.

`erlang` Poisson arrivals at many exponential servers; `general` other service times, priorities, vacations; `tails`
distributions of the wait; `finite` limited places and state-dependent service; `bulk` service in batches; `parallel`
jobs split over devices; `renewal` bursty gaps at many servers; `bursts` rates that move; `routing` many queues.
"""
