/// Tells whether a log may lack entries that it had before: it was compacted or read anew since.
package struct LogGeneration: Sendable, Hashable {
  var opening: Int
  var replacements: Int
}

extension Engine {
  /// The log as it is now.
  package var generation: LogGeneration {
    reading.withLock { LogGeneration(opening: $0.opening, replacements: $0.replacements) }
  }
}
