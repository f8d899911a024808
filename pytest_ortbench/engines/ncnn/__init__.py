"""ncnn, a library for phones that computes without other libraries."""
