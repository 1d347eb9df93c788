"""Documents on their way in: loaders read them, the splitter cuts, the pipeline stores."""
