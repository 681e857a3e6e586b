"""One short-lived pod that tries out what a trial's pod needs."""
