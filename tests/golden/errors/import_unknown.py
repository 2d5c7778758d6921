# RUN: tsc %s --entry f
# ERROR: 3:8: ModuleNotFoundError: No module named 'numpy'
import numpy as np
def f(n: int):
    return np.abs(n)
