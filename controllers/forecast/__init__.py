"""When trials and the sweep will end: foreseen from what their reports tell, with the range that holds it 9 times of 10.

``guesses`` draws what is not known, ``fluid`` follows the sweep to its end, ``ranges`` puts the draws together, and
``forecaster`` does it while a sweep runs.
"""
