"""Word saliency as word alignment: the study of Ding et al. 2019."""
