"""Document and facts to a verdict and its record: one finding, one report, one order of verdicts."""
