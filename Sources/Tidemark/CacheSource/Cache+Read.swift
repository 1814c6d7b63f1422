internal import TidemarkEngine

extension Cache {
  /// Reads a key through the cache.
  ///
  /// However many tasks read a key at a time, the source is asked once; it is told when the last of
  /// them is cancelled, and what it answers after that is not kept.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - policy: when the source is asked. With ``ReadPolicy/staleWhileRevalidate`` a value that is
  ///     valid no more is returned, and the source is asked behind the reader's back;
  ///     ``reads(_:_:from:)`` has both.
  ///   - source: is asked.
  /// - Returns: what was there and what came. An error of the source's is in it, not thrown.
  /// - Throws: `CancellationError` when the task is cancelled; what reading and writing the store
  ///   throws.
  public func read(
    _ key: some BytesConvertible, _ policy: ReadPolicy = .automatic, from source: CacheSource<Value>
  ) async throws -> CacheRead<Value> {
    let key = Key(key)
    let stored = try look(key, policy, source)
    switch stored.next {
    case .done:
      region.count { $0.requestsAvoided += 1 }
      return CacheRead(stored: stored.entry)
    case .refresh:
      let ask = question(key, source)
      region.flights.refresh(full(key), ask)
      region.count { $0.requestsAvoided += 1 }
      return CacheRead(stored: stored.entry)
    case .ask: return try await fetch(key, stored, source)
    }
  }

  /// Reads a key through the cache, giving what is there first and what comes after it.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - policy: when the source is asked.
  ///   - source: is asked.
  /// - Returns: one outcome, or two where something is there and the source is asked; the source is
  ///   asked while the sequence is being read. Who stops reading calls the question off.
  public func reads(
    _ key: some BytesConvertible, _ policy: ReadPolicy = .cachedThenRefresh,
    from source: CacheSource<Value>
  ) -> CacheReads<Value> {
    CacheReads(cache: self, key: Key(key), policy: policy, source: source)
  }

  /// A key's value, from the cache or from a source that is a closure.
  ///
  /// ```swift
  /// let home = try await pages.value(for: "home", policy: .cacheFirst) {
  ///   try await server.page("home")
  /// }
  /// ```
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - policy: when the closure is called.
  ///   - maxAge: for how long what it returns is valid; nil for the cache's policy.
  ///   - fetch: fetches the value.
  /// - Returns: the value; nil where there is none and nobody was asked.
  /// - Throws: what `fetch` throws, where nothing else is there.
  public func value(
    for key: some BytesConvertible, policy: ReadPolicy = .automatic, maxAge: Duration? = nil,
    fetch: @escaping @Sendable () async throws -> Value
  ) async throws -> Value? {
    let source = CacheSource<Value> { _ in .value(try await fetch(), maxAge: maxAge) }
    let read = try await read(key, policy, from: source)
    if read.value == nil, let error = read.error { throw error }
    return read.value
  }
}

// MARK: - Steps

extension Cache {
  /// The first step of a read: what is there, and what comes next.
  struct Look: Sendable {
    enum Next: Sendable {
      /// Nothing; the source is not asked.
      case done
      /// The source is asked, and nobody waits for that.
      case refresh
      /// The source is asked.
      case ask
    }

    var entry: CachedEntry<Value>?
    var next: Next
    /// Whether what is there serves where the source fails.
    var serves: Bool
  }

  func look(
    _ key: Key, _ policy: ReadPolicy, _ source: CacheSource<Value>
  ) throws(TidemarkError) -> Look {
    if policy == .networkOnly { return Look(next: .ask, serves: false) }
    let entry = try entry(forKey: key)
    var policy = policy
    if policy == .automatic { policy = source.isOnline() ? .cacheFirst : .cacheOnly() }
    if case .cacheOnly(let maxStale) = policy {
      let fits = entry.map { isFresh($0, within: maxStale) } ?? false
      return Look(entry: fits ? entry : nil, next: .done, serves: false)
    }
    // The user's own value has no source but the user.
    if entry?.isOwned == true { return Look(entry: entry, next: .done, serves: true) }
    if entry == nil, policy != .networkFirst,
      region.flights.isAbsent(full(key), at: region.now.milliseconds)
    {
      return Look(next: .done, serves: false)
    }
    let isValid = entry?.isValid ?? false
    let serves = entry.map { isFresh($0, within: source.staleIfError) } ?? false
    switch policy {
    case .staleWhileRevalidate:
      return Look(
        entry: entry, next: isValid ? .done : entry == nil ? .ask : .refresh, serves: serves)
    case .cacheFirst: return Look(entry: entry, next: isValid ? .done : .ask, serves: serves)
    default: return Look(entry: entry, next: .ask, serves: serves)
    }
  }

  /// Whether an entry is valid, or has not been for so long at most.
  private func isFresh(_ entry: CachedEntry<Value>, within maxStale: Duration?) -> Bool {
    guard !entry.isValid, let maxStale, let end = entry.validUntil else { return true }
    let (limit, overflow) = end.milliseconds.addingReportingOverflow(
      Int64(clamping: maxStale.wholeMilliseconds))
    return overflow || region.now.milliseconds <= limit
  }

  /// The second step: the source's answer.
  func fetch(
    _ key: Key, _ look: Look, _ source: CacheSource<Value>
  ) async throws -> CacheRead<Value> {
    var read = CacheRead(stored: look.entry)
    do {
      let (answer, isShared) = try await region.flights.answer(full(key), question(key, source))
      if isShared { region.count { $0.requestsAvoided += 1 } }
      switch answer {
      case .kept: read.fetched = try peek(key)
      case .gone: read.isGone = true
      }
    } catch let error as CancellationError {
      throw error
    } catch {
      try Task.checkCancellation()
      read.error = error
      if !look.serves { read.stored = nil }
    }
    return read
  }

  /// The question to the source, with what becomes of the answer.
  func question(
    _ key: Key, _ source: CacheSource<Value>
  ) -> @Sendable (UInt64) async throws -> Flights.Answer {
    { [self] id in
      let hash = try peek(key)?.hash
      region.count { $0.fetches += 1 }
      let answer = try await asked(SourceRequest(key: key, hash: hash), source)
      // One that was called off meanwhile leaves no trace.
      guard region.flights.isCurrent(id, of: full(key)) else { throw CancellationError() }
      return try await keep(answer, of: key)
    }
  }

  private func asked(
    _ request: SourceRequest, _ source: CacheSource<Value>
  ) async throws -> Fetched<Value> {
    var attempt = 1
    while true {
      do { return try await source.fetch(request) } catch {
        guard attempt < source.retry.attempts, !(error is CancellationError) else { throw error }
      }
      try Task.checkCancellation()
      try await source.sleep(source.retry.pause(after: attempt))
      attempt += 1
    }
  }

  private func keep(
    _ answer: Fetched<Value>, of key: Key
  ) async throws -> Flights.Answer {
    let now = region.now.milliseconds
    switch answer {
    case .value(let value, let hash, let labels, let maxAge):
      try await put(key, value, labels: labels, hash: hash, maxAge: maxAge)
      region.flights.noteAbsence(full(key), until: 0, now: now)
      return .kept
    case .notModified(let hash, let maxAge):
      guard try await touch(key, hash: hash, maxAge: maxAge) else {
        throw TidemarkError(
          .conflict, "the source says that nothing has changed, and the value is there no more")
      }
      let bytes = try peek(key).map { _ in try region.valueLength(full(key)) } ?? 0
      region.count { $0.bytesSaved += bytes }
      return .kept
    case .absent(let maxAge):
      try await remove(key)
      let age = Int64(clamping: maxAge.wholeMilliseconds)
      let end = now.addingReportingOverflow(age)
      region.flights.noteAbsence(
        full(key), until: end.overflow ? .max : end.partialValue, now: now)
      return .gone
    }
  }
}
