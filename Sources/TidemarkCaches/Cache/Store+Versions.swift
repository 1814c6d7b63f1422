public import TidemarkEngine

extension Store {
  /// Returns the cache of a prefix for one version of its values, and removes the entries of older
  /// versions.
  ///
  /// A program whose values have changed takes the next number, and never meets a value of the old
  /// form. Entries of later versions, which a newer program has left, stay.
  /// ```swift
  /// let articles = try await store.cache(prefix: "articles/", version: 2)
  /// ```
  /// - Parameters:
  ///   - prefix: 1 to 1,000 bytes; `v`, ten digits and a slash follow in the keys.
  ///   - version: the version.
  ///   - policy: its rules.
  /// - Throws: `invalidArgument`; what writing to the store throws.
  public func cache(
    prefix: some BytesConvertible, version: UInt32, policy: CachePolicy = CachePolicy()
  ) async throws(TidemarkError) -> Cache<[UInt8]> {
    try await cache(prefix: prefix, version: version, policy: policy, coding: .bytes)
  }

  /// Returns the cache of a prefix for one version of its values, with a coding of your own, and
  /// removes the entries of older versions.
  /// - Parameters:
  ///   - prefix: see ``cache(prefix:version:policy:)``.
  ///   - version: the version.
  ///   - policy: its rules.
  ///   - coding: how values become bytes.
  public func cache<Value: Sendable>(
    prefix: some BytesConvertible, version: UInt32, policy: CachePolicy = CachePolicy(),
    coding: CacheCoding<Value>
  ) async throws(TidemarkError) -> Cache<Value> {
    let prefix = Key(prefix).bytes
    guard !prefix.isEmpty else {
      throw TidemarkError(.invalidArgument, "a cache's prefix of 0 bytes; it has 1 to 1000")
    }
    let cache = try cache(
      prefix: Self.versioned(prefix, version), policy: policy, coding: coding)
    for prefix in [prefix, ReservedKeys.staged + prefix, ReservedKeys.collection(prefix)] {
      try await giveUpVersions(of: prefix, before: version)
    }
    return cache
  }

  private static func versioned(_ prefix: [UInt8], _ version: UInt32) -> [UInt8] {
    let digits = Array(String(version).utf8)
    let zeros = [UInt8](repeating: UInt8(ascii: "0"), count: 10 - digits.count)
    return prefix + [UInt8(ascii: "v")] + zeros + digits + [UInt8(ascii: "/")]
  }

  private static var evictionsPerCommit: Int { 4_096 }

  private func giveUpVersions(
    of prefix: [UInt8], before version: UInt32
  ) async throws(TidemarkError) {
    let query = EntryQuery(
      prefix: prefix, from: Key(Self.versioned(prefix, 0)),
      upTo: Key(Self.versioned(prefix, version)), values: false)
    while true {
      var batch = WriteBatch()
      var rows = try keys(query)
      while batch.count < Self.evictionsPerCommit, let key = try rows.next() {
        guard Self.isVersioned(key.bytes.dropFirst(prefix.count)),
          try engine.reader.slot(ofKey: key.bytes.rawSpan)?.isLiveCached == true
        else { continue }
        try batch.operations.addEviction(of: key.bytes.rawSpan, at: 0)
      }
      guard !batch.isEmpty else { return }
      // Somebody else may have given the same up: then there is nothing to go on for.
      guard try await !commit(batch, nil).sequences.isEmpty else { return }
    }
  }

  /// Whether what follows a prefix is the number of a version.
  private static func isVersioned(_ rest: ArraySlice<UInt8>) -> Bool {
    let digits = rest.dropFirst().prefix(10)
    return rest.first == UInt8(ascii: "v")
      && digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      && rest.dropFirst(11).first == UInt8(ascii: "/")
  }
}
