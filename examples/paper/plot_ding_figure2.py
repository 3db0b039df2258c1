"""Figure 2 of Ding et al.: accuracy of logistic regression against epsilon.

As epsilon falls, delta = 0.001 becomes a bound on the total variation, which takes noise of 398.94
sensitivities and no more. OPERA's printed sensitivity is 5 (m + beta)/(n m beta) = 5020/n: on
30,162 rows the noise in each weight has deviation 66, and the classifier is a coin. The best
accuracy over all epsilons down to 1e-9, which the paper shows, does not follow from its algorithm,
nor from the two fifths of that noise that OperaLogisticRegression adds. With n > 1/delta, moreover,
delta permits publishing a row. The larger class alone is 75.4 % of Adult's held-out rows and 88.9 %
of BANK's.

    python examples/paper/plot_ding_figure2.py figure2.png          # from results/ding.json
    python examples/paper/plot_ding_figure2.py figure2.png --fast   # a sample, measured now
"""

from ding import show_figure

if __name__ == "__main__":
    show_figure(2, __doc__)
