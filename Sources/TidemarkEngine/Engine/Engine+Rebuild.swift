extension Engine {
  /// Makes the index anew from the log, after its image turned out to be damaged.
  ///
  /// The caller holds the writer's lock and has written what was staged, so the log knows
  /// everything that is visible.
  func rebuildIndex(after error: IndexError) throws(TidemarkError) {
    guard error.voidsImage else { throw describe(error) }
    try rebuildIndex(voidsImages: true)
  }

  /// Makes the index anew from the log; the same holds for the caller.
  /// - Parameter voidsImages: whether no image is to be trusted.
  func rebuildIndex(voidsImages: Bool) throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      let builder = IndexBuilder(
        path: path, environment: environment, keys: keys,
        manifest: read.manifest, segments: read.segments, lastSequence: read.visible)
      let built = try builder.build(
        active: nil, salvage: configuration.recovery == .salvage, ignoresRuns: voidsImages)
      read.index = built.index
      read.nextRun.startOver()
      read.usage = built.usage
      read.staleBelow = max(read.staleBelow, built.staleBelow)
    }
    hotCache.removeAll()
  }

  /// Sets the index right after a batch that failed midway: it may know entries that are in no
  /// frame, whose sequences the next batch will take.
  ///
  /// If that fails, too, nothing can be read or written until the store is reopened.
  func discardFailedBatch(
    after error: IndexOrStoreError, _ state: inout WriterState
  ) {
    do {
      try writeStaged(&state, mayCompress: false)
      try rebuildIndex(voidsImages: error.voidsImage)
    } catch {
      // An error of writing the log, if there was one, is what counts.
      state.poison =
        state.poison
        ?? TidemarkError(
          .inputOutput,
          "a batch failed midway, and the index could not be made anew; nothing of it is kept",
          cause: error)
      reading.withLock { $0.staleBelow = .max }
    }
  }
}

extension IndexError {
  /// Whether the image is damaged, so that the index is to be made without it.
  var voidsImage: Bool {
    switch self {
    case .imageDamaged, .imageInvalid: true
    case .fileSystem, .limitExceeded: false
    }
  }
}

extension IndexOrStoreError {
  var voidsImage: Bool {
    if case .index(let error) = self { error.voidsImage } else { false }
  }
}
