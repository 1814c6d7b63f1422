internal import TidemarkEngine

extension Cache {
  /// Reads a key through the cache: takes the cached value, calls the source, or both, as the
  /// policy says.
  ///
  /// However many tasks read a key at a time, the source is called once. Only reads that call the
  /// source in any case, and start one after the other, call it again. When the last waiting task
  /// is cancelled, the call is cancelled too, and the cache does not keep a later answer.
  /// - Parameters:
  ///   - key: the key, without the cache's prefix.
  ///   - policy: the rule by which the read uses the cache and the source.
  ///   - source: the source to call.
  /// - Returns: the cached value and the source's answer. An error of the source is in it, not
  ///   thrown.
  /// - Throws: `CancellationError` when the task is cancelled, and the errors of reading and
  ///   writing the store.
  public func read(
    _ key: some BytesConvertible, _ policy: ReadPolicy = .automatic, from source: CacheSource<Value>
  ) async throws -> CacheRead<Value> {
    let key = Key(key)
    return try await outcome(key, try look(key, policy, source), source)
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
  @inlinable
  nonisolated(nonsending) public func value(
    for key: some BytesConvertible, policy: ReadPolicy = .automatic, maxAge: Duration? = nil,
    fetch: @escaping @Sendable () async throws -> Value
  ) async throws -> Value? {
    let known = try key.withBytes { (key) throws(TidemarkError) in
      try knownValue(atKey: key, policy)
    }
    if let known { return known }
    return try await value(forKey: Key(key), policy, maxAge: maxAge, fetch: fetch)
  }

  @usableFromInline
  func value(
    forKey key: Key, _ policy: ReadPolicy, maxAge: Duration?,
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
  /// The value of a key that was read before and is valid, where that is all that a policy needs.
  @usableFromInline
  func knownValue(atKey key: RawSpan, _ policy: ReadPolicy) throws(TidemarkError) -> Value? {
    guard !policy.asksAnyway, let bytes = try region.knownValue(ofKey: key, isAtHand: true)
    else { return nil }
    do { return try decode(bytes) } catch {
      // The source is asked for it again.
      region.count { ($0.hits, $0.requestsAvoided) = ($0.hits - 1, $0.requestsAvoided - 1) }
      return nil
    }
  }

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

    /// The reader's policy.
    var policy: ReadPolicy
    /// The outcome where the source is not asked.
    var read = CacheRead<Value>()
    var next = Next.ask
    /// Whether what is there serves where the source fails.
    var serves = false
  }

  /// - Parameter counts: whether it is a use of what is there.
  func look(
    _ key: Key, _ policy: ReadPolicy, _ source: CacheSource<Value>, counts: Bool = true
  ) throws(TidemarkError) -> Look {
    var look = Look(policy: policy)
    let entry = policy == .networkOnly ? nil : try readable(key, counts: counts)
    if case .cacheOnly(let maxStale) = policy {
      look.read.stored = entry.flatMap { isFresh($0, within: maxStale) ? $0 : nil }
      look.next = .done
      return look
    }
    look.read.stored = entry
    look.next = next(key, entry, policy)
    look.serves = entry.map { isFresh($0, within: source.staleIfError) } ?? false
    guard look.next != .done, !source.isOnline() else { return look }
    look.read.error = TidemarkError(.offline, "there is no network to reach the source by")
    look.next = .done
    // What is there serves as it does where the source fails; where it comes first in any case,
    // however old it is.
    if !look.serves, policy.asksAnyway || policy == .cacheFirst { look.read.stored = nil }
    return look
  }

  private func next(
    _ key: Key, _ entry: CachedEntry<Value>?, _ policy: ReadPolicy
  ) -> Look.Next {
    guard let entry else {
      let isAbsent =
        !policy.asksAnyway && region.flights.isAbsent(full(key), at: region.now.milliseconds)
      return isAbsent ? .done : .ask
    }
    // The user's own value has no source but the user.
    if entry.isOwned || entry.isValid && !policy.asksAnyway { return .done }
    return policy == .staleWhileRevalidate ? .refresh : .ask
  }

  /// A key's entry; nil also where the value cannot be decoded, so that a new one is asked for.
  private func readable(
    _ key: Key, counts: Bool
  ) throws(TidemarkError) -> CachedEntry<Value>? {
    do {
      guard counts else { return try peek(key) }
      try region.load()
      return try find(full(key))
    } catch {
      guard error.code == .coding else { throw error }
      return nil
    }
  }

  /// Whether an entry is valid, or has not been for so long at most.
  private func isFresh(_ entry: CachedEntry<Value>, within maxStale: Duration?) -> Bool {
    guard !entry.isValid, let maxStale, let end = entry.validUntil else { return true }
    return region.now.milliseconds
      <= end.milliseconds.addingClamped(Int64(clamping: maxStale.wholeMilliseconds))
  }

  /// The second step: what was there, or the third one.
  private func outcome(
    _ key: Key, _ look: Look, _ source: CacheSource<Value>
  ) async throws -> CacheRead<Value> {
    switch look.next {
    case .done: break
    case .refresh: region.flights.refresh(full(key), question(key, look.policy, source))
    case .ask: return try await fetch(key, look, source)
    }
    region.count { $0.requestsAvoided += 1 }
    return look.read
  }

  /// The third step: the source's answer.
  private func fetch(
    _ key: Key, _ look: Look, _ source: CacheSource<Value>
  ) async throws -> CacheRead<Value> {
    var read = look.read
    do {
      let (answer, isShared) = try await region.flights.answer(
        full(key), joins: look.policy != .refresh, question(key, look.policy, source))
      switch answer {
      case .value(let answered):
        read.fetched = try peek(key)
        // It is the answer itself where that did not fit into the cache.
        if read.fetched == nil, let answered { read.fetched = try described(key, answered) }
      case .unkept(let answered): read.fetched = try described(key, answered)
      case .gone: read.isGone = true
      case .overtaken:
        let again = try self.look(key, look.policy, source, counts: false)
        return try await outcome(key, again, source)
      }
      if isShared { region.count { $0.requestsAvoided += 1 } }
    } catch let failure as SourceFailure {
      try Task.checkCancellation()
      read.error = failure.error
      if !look.serves { read.stored = nil }
    }
    return read
  }

  /// The entry that an answer would be.
  private func described(
    _ key: Key, _ answered: Flights.Answered
  ) throws(TidemarkError) -> CachedEntry<Value> {
    let now = Timestamp(milliseconds: region.now.milliseconds)
    let defaultAge = region.policy.maxAgeMilliseconds
    let validity = Validity(validated: now, maxAge: answered.maxAge.map { Validity.seconds($0) })
    return CachedEntry(
      key: key, value: try decode(answered.bytes), labels: answered.labels, hash: answered.hash,
      attachment: answered.attachment?.reference,
      isValid: validity.isValid(at: now, defaultAge: defaultAge),
      validUntil: Timestamp(milliseconds: validity.end(defaultAge)), updated: now,
      validated: now, uses: 0, isOwned: false)
  }
}
