"""The checker's second measurement: what a session said, made again from a cohort."""
