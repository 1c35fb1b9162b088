"""What every room stands on: errors with place and next step, the packaged data, schemas."""
