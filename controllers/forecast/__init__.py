"""When trials and the sweep will end, by what their reports tell, with a range that holds it nine times of ten.

``guesses`` draws what is not known, ``fluid`` follows the sweep to its end, ``ranges`` puts the draws together, and
``forecaster`` does it while a sweep runs.
"""
