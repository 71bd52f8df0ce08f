"""What planner says, held against what was measured."""
