public import TidemarkEngine

extension Cache {
  /// Fills the cache with data that comes with the program; to be called whenever it starts.
  ///
  /// It is compared with what is here like a collection of a server's, and again after an update of
  /// the program, whose data has another hash. It ranks below the server: once the cache has been
  /// synced with one, and for values that came in another way, nothing is done. Values that the
  /// user has written stay.
  /// ```swift
  /// let catalogue = try store.cache(prefix: "catalogue/", policy: .manifest)
  /// try await catalogue.prefill(from: .lines(at: "catalogue.ndjson.zst"))
  /// ```
  /// - Parameters:
  ///   - data: the data, with values as they are kept: those of a `Codable` cache as its JSON.
  ///   - durability: when the switch counts as done; nil for the store's.
  /// - Returns: what has changed.
  /// - Throws: `busy` while another task syncs the cache, `invalidArgument` for a cache that is
  ///   bounded, `coding` for a file that cannot be read, or that names an attachment of which the
  ///   content is not there, `noSpace` and the like.
  @discardableResult
  public func prefill(
    from data: PrefilledData, durability: Durability? = nil
  ) async throws -> MirrorOutcome {
    try await region.gate.run {
      try await store.offPool("tidemark-prefill") { (_) throws(TidemarkError) in
        try fill(from: data, durability)
      }
    }
  }

  private func fill(
    from data: PrefilledData, _ durability: Durability?
  ) throws(TidemarkError) -> MirrorOutcome {
    let known = try manifest
    guard known?.isPrefilled ?? true else { return MirrorOutcome() }
    let hash = try data.collectionHash()
    guard known?.collectionHash != hash else { return MirrorOutcome() }
    var table = ItemTable(prefixLength: region.prefix.count)
    try data.forEach { (item) throws(TidemarkError) in
      if item.isRemoval {
        table.remove(item.key.rawSpan)
      } else {
        try table.add(item.key.rawSpan, hash: item.hash.rawSpan)
      }
    }
    var update = try CollectionUpdate(
      self, to: table, CollectionState(hash: hash, isPrefilled: true))
    try stage(data, &update)
    var outcome = update.outcome
    try store.blocking.retryingConflicts { () throws(TidemarkError) in
      for batch in try update.switching() { _ = try store.commitBlocking(batch, durability) }
    }
    outcome.kind = .switched
    return outcome
  }

  /// Stages what is missing, in a second pass over the data.
  private func stage(
    _ data: PrefilledData, _ update: inout CollectionUpdate
  ) throws(TidemarkError) {
    var waiting: [CollectionUpdate.FetchedItem] = []
    var bytes = 0
    func commit() throws(TidemarkError) {
      _ = try store.commitBlocking(try update.staging(waiting), .buffered)
      update.noteStaged(waiting)
      (waiting, bytes) = ([], 0)
    }
    try data.forEach { (item) throws(TidemarkError) in
      guard let index = update.index(of: item.key.rawSpan, item.hash, .missing) else { return }
      waiting.append(
        CollectionUpdate.FetchedItem(
          index: index, value: item.value, labels: item.labels, maxAge: item.maxAge,
          attachment: try item.attachment?.copy(to: store)))
      bytes += item.value.count
      if waiting.count >= 256 || bytes >= 1 << 20 { try commit() }
    }
    if !waiting.isEmpty { try commit() }
  }
}
