public import TidemarkEngine

extension Cache {
  /// Makes the cache equal a collection that somebody else keeps.
  ///
  /// The hash of the collection is asked for first. Where it is the known one, that is all. Else
  /// its list is compared with what is here: what is unknown is added, what differs is fetched
  /// again, what the list lacks is given up, all in one commit. Readers of a ``view()`` that was
  /// taken before keep the generation that they see.
  ///
  /// Items are kept as they come, so that a sync that was killed, cancelled or ended by a full disk
  /// goes on where it was. A few items that fail are told, asked for again by the next
  /// sync, and do not hold the others; where most fail, the old generation stays.
  /// ```swift
  /// let catalogue = try store.cache(prefix: "catalogue/", policy: .manifest)
  /// let outcome = try await catalogue.sync(with: source)
  /// ```
  /// - Parameters:
  ///   - source: the collection.
  ///   - options: how it is brought here.
  /// - Returns: what has changed, and what has failed.
  /// - Throws: `busy` while another task syncs the cache, `invalidArgument` for a cache that is
  ///   bounded, `timedOut`, `noSpace` and the like, with the old generation in its place; what the
  ///   source throws for its hash and its list; `CancellationError`.
  @discardableResult
  public func sync<Source: ManifestSource<Value>>(
    with source: Source, options: ManifestOptions = ManifestOptions()
  ) async throws -> ManifestOutcome {
    try await region.gate.run { try await update(from: source, options) }
  }

  /// The generation that the cache shows; nil where it has none yet.
  public var manifest: ManifestStatus? {
    get throws(TidemarkError) {
      guard let entry = try store.entry(forKey: ReservedKeys.collection(region.prefix)),
        let state = CollectionState(decoding: entry.value.rawSpan)
      else { return nil }
      return ManifestStatus(
        generation: entry.sequence, collectionHash: state.hash, items: state.items,
        outstanding: state.outstanding, isPrefilled: state.isPrefilled, switched: entry.updated)
    }
  }

  /// Why the last sync or prefilling since the store was opened has ended with an error, so that
  /// the generation is an old one; nil where it has not.
  public var manifestFailure: (any Error)? { region.gate.failure }

  /// Gives up what was fetched for a switch that has not come: where space is short. The next sync
  /// fetches it again.
  public func discardStaged() async throws(TidemarkError) {
    let prefix = ReservedKeys.staged + region.prefix
    _ = try await store.commit(try store.clearBatch(EntryQuery(prefix: prefix)), nil)
  }
}

// MARK: - Steps

extension Cache {
  private func update<Source: ManifestSource<Value>>(
    from source: Source, _ options: ManifestOptions
  ) async throws -> ManifestOutcome {
    let hash = try await options.answer(within: options.listTimeout) {
      try await source.collectionHash()
    }
    guard (1...Limits.hashBytes).contains(hash.count) else {
      throw TidemarkError(
        .invalidArgument,
        "a collection's hash of \(hash.count) bytes; it has 1 to \(Limits.hashBytes)")
    }
    let known = try manifest
    let isKnown = known.map { $0.collectionHash == hash && !$0.isPrefilled } ?? false
    if isKnown, known?.outstanding == 0 { return ManifestOutcome() }
    let list = try await list(source, options)
    var update = try CollectionUpdate(self, to: list, CollectionState(hash: hash))
    let fetch = CollectionFetch(cache: self, source: source, options: options)
    let report = try await fetch.run(&update)
    var outcome = update.outcome
    outcome.failures = report.failures
    // A first generation of nothing helps nobody.
    if report.isDead || known == nil && outcome.outstanding > 0 && outcome.added == 0 {
      outcome.kind = .held
      return outcome
    }
    if isKnown, !update.changesEntries { return outcome }
    // The user may write a key of the collection just then: what he wrote stays, and the switch is
    // made anew without it.
    try await store.retryingConflicts { [update] () throws(TidemarkError) in
      for batch in try update.switching() {
        _ = try await store.commit(batch, options.durability)
      }
    }
    outcome.kind = .switched
    return outcome
  }

  private func list<Source: ManifestSource<Value>>(
    _ source: Source, _ options: ManifestOptions
  ) async throws -> ItemTable {
    let prefixLength = region.prefix.count
    typealias List = (table: ItemTable, failure: TidemarkError?)
    let (table, failure) = try await options.answer(within: options.listTimeout) {
      let list = Lock<List>((ItemTable(prefixLength: prefixLength), nil))
      do {
        try await source.list { item in
          try list.withLock { (list: inout List) throws(TidemarkError) in
            // Nothing follows what was refused, whether or not the source passes over that.
            if let failure = list.failure { throw failure }
            do throws(TidemarkError) {
              try list.table.add(item.key.bytes.rawSpan, hash: item.hash.rawSpan)
            } catch {
              list.failure = error
              throw error
            }
          }
        }
      } catch {
        // A list that was refused would be refused again.
        guard list.withLock({ $0.failure }) != nil else { throw error }
      }
      return list.withLock { $0 }
    }
    if let failure { throw failure }
    return table
  }
}

extension CollectionUpdate {
  /// The counts of the update, as a program is told.
  var outcome: ManifestOutcome {
    var outcome = ManifestOutcome()
    for index in fates.indices {
      switch fates[index] {
      case .staged where former[index] == 0: outcome.added += 1
      case .staged: outcome.refetched += 1
      case .failed, .missing: outcome.outstanding += 1
      case .owned: outcome.owned += 1
      case .same, .renewed: break
      }
    }
    outcome.deleted = absent.count
    outcome.resumed = resumed
    return outcome
  }
}
