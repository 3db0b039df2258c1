"""Figure 6 of Ding et al.: accuracy and objective of networks on Heart and Cardio.

The paper reports that its GRPUA is ahead of SgdPert. With the printed noise it is, and has no
privacy: that noise lacks a factor of 2n. SgdPert's noise is sound, and many times what its steps
need. skdp's GRPUA and DP-SGD are sound with exactly as much noise as they need, and beside them is
the line, which learns more from so few rows.

    python examples/paper/plot_ding_figure6.py figure6.png          # from results
    python examples/paper/plot_ding_figure6.py figure6.png --fast   # a sample, measured now
"""

from ding_networks import show_figure

if __name__ == "__main__":
    show_figure(__doc__)
