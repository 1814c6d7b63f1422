extension Engine {
  /// Makes the index anew from the log, after its image turned out to be damaged.
  ///
  /// The caller holds the writer's lock and has written what was staged, so the log knows
  /// everything that is visible.
  func rebuildIndex(after error: IndexError) throws(TidemarkError) {
    switch error {
    case .imageDamaged, .imageInvalid: try rebuildIndex()
    default: throw describe(error)
    }
  }

  /// The same whatever the reason.
  func rebuildIndex() throws(TidemarkError) {
    try reading.withLock { (read: inout ReadState) throws(TidemarkError) in
      let builder = IndexBuilder(
        path: path, environment: environment, caches: caches, manifest: read.manifest,
        segments: read.segments, lastSequence: read.visible)
      let voided = Set(read.manifest.images.map(\.id))
      let built = try builder.build(active: [], salvage: false, ignoring: voided)
      read.index = built.index
      read.frozen = nil
      read.indexGeneration += 1
      read.usage = built.usage
    }
    hotCache.removeAll()
  }
}
