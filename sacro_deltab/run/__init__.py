"""The main job from files to a judged folder, and the demonstration of it."""
