extension LabelQuery {
  /// Whether every key matches.
  package var isEmpty: Bool { all.isEmpty && any.isEmpty && not.isEmpty }

  /// Whether a set of labels matches.
  package func matches(_ labels: [[UInt8]]) -> Bool {
    all.allSatisfy(labels.contains) && (any.isEmpty || any.contains(where: labels.contains))
      && !not.contains(where: labels.contains)
  }
}
