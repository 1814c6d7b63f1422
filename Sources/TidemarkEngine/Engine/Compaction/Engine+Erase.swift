extension Engine {
  /// Leaves nothing on the disk of cached data that was given up, but for what open views show:
  /// keys, values and attachments go from log, index and files.
  package func eraseGivenUp() throws(TidemarkError) {
    try sealSegments()
    try flush()
    // An eviction goes from the log once the index knows it no more.
    try writeWholeRun()
    try countMissingUsage()
    if let first = firstWithCached() {
      var options = CompactionOptions { [self] in writer.withLock { $0.isClosed || $0.isSuspended }
      }
      options.automatic = CompactionOptions.Automatic(first: first, pace: nil)
      try compact(options)
    }
    try removeReplaced()
    try Quarantine(environment.fileSystem, storePath: path).removeAll()
    try sweepAttachments()
  }

  /// Writes a run that takes the place of all. An empty store has none.
  func writeWholeRun() throws(TidemarkError) {
    guard writer.withLock({ $0.sequence > 0 }) else { return }
    for _ in 0..<Limits.imageAttempts {
      writer.wait { !$0.runs.isWriting }
      if try writeRun(.whole) != nil { return }
    }
    throw TidemarkError(
      .limitExceeded, "runs of the index were written all the while; try again later")
  }
}
