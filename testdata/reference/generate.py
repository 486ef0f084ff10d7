#!/usr/bin/env python3
"""Writes the reference files beside it: one JSON file for each file of the standard library.

    apt-get install python3-numpy python3-scipy python3-torch
    python3 testdata/reference/generate.py

The files are checked in, so that the tests (parser/std) need no Python. The numbers come from PyTorch, NumPy and
SciPy alone.
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cases_examples
import cases_index
import cases_linear
import cases_loss
import cases_pointwise
import cases_programs
import cases_reduce

if __name__ == "__main__":
    folder = os.path.dirname(os.path.abspath(__file__))
    for module in (
        cases_pointwise,
        cases_reduce,
        cases_loss,
        cases_linear,
        cases_index,
        cases_programs,
        cases_examples,
    ):
        for cases in module.all_cases():
            cases.write(folder)
            print(f"{cases.name}: {len(cases.cases)} cases")
