"""Many servers: goodput under load, pools, reserve and cost."""
