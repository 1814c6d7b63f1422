public import TidemarkEngine

extension Cache {
  /// Makes the cache equal to a source's collection: adds, replaces and removes entries in one
  /// commit.
  ///
  /// The sync first asks for the collection's hash, and ends when the hash is the known one.
  /// Otherwise it compares the source's list with the cache. It fetches items that are new or
  /// differ, and removes entries that the list lacks. Readers of an earlier ``view()`` keep the
  /// generation that they see.
  ///
  /// The cache keeps each item as it comes, so that a sync that was killed, cancelled or ended by a
  /// full disk goes on where it was. A few failed items do not hold up the others; the next sync
  /// fetches them again. When more than ``MirrorOptions/mostFailures`` fail, the old generation
  /// stays.
  /// ```swift
  /// let catalogue = try store.cache(prefix: "catalogue/", policy: .manifest)
  /// let outcome = try await catalogue.sync(with: source)
  /// ```
  /// - Parameters:
  ///   - source: the collection to mirror.
  ///   - options: parallel fetches, time limits, retries and progress.
  /// - Returns: the numbers of changed and failed items.
  /// - Throws: `busy` while another task syncs the cache; `invalidArgument` for a cache with
  ///   bounds; `timedOut`, `noSpace` and the like; the source's errors for its hash and its list;
  ///   `CancellationError`. The old generation then stays.
  @discardableResult
  public func sync<Source: MirrorSource<Value>>(
    with source: Source, options: MirrorOptions = MirrorOptions()
  ) async throws -> MirrorOutcome {
    try await region.gate.run { try await update(from: source, options) }
  }

  /// The generation of the collection that the cache shows; nil before the first sync or prefill.
  public var manifest: MirrorStatus? {
    get throws(TidemarkError) {
      guard let entry = try store.entry(forKey: ReservedKeys.collection(region.prefix)),
        let state = CollectionState(decoding: entry.value.rawSpan)
      else { return nil }
      return MirrorStatus(
        generation: entry.sequence, collectionHash: state.hash, items: state.items,
        outstanding: state.outstanding, isPrefilled: state.isPrefilled, switched: entry.updated)
    }
  }

  /// The error of the last sync or prefill since the store was opened, so that the cache shows an
  /// older generation; nil when it succeeded.
  public var manifestFailure: (any Error)? { region.gate.failure }

  /// Removes the items that an interrupted or held sync has fetched, to free space. The next sync
  /// fetches them again.
  public func discardStaged() async throws(TidemarkError) {
    let prefix = ReservedKeys.staged + region.prefix
    _ = try await store.commit(try store.clearBatch(EntryQuery(prefix: prefix)), nil)
  }
}

// MARK: - Steps

extension Cache {
  private func update<Source: MirrorSource<Value>>(
    from source: Source, _ options: MirrorOptions
  ) async throws -> MirrorOutcome {
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
    if isKnown, known?.outstanding == 0 { return MirrorOutcome() }
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

  private func list<Source: MirrorSource<Value>>(
    _ source: Source, _ options: MirrorOptions
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
  var outcome: MirrorOutcome {
    var outcome = MirrorOutcome()
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
