"""What one epsilon buys: the planner."""

from .planning import plan_training

__all__ = ["plan_training"]
