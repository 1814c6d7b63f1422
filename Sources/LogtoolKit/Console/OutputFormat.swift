/// How results are printed.
enum OutputFormat: String, CaseIterable {
  case text
  case json
  /// One JSON value a line.
  case jsonl
}

/// Whether there are colours.
enum ColourChoice: String, CaseIterable {
  case auto, always, never
}
