"""What a training script adds to become a trial that may be moved."""
