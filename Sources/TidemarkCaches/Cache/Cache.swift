public import TidemarkEngine

/// A cache of a server's values in a store: the keys that begin with a prefix. It keeps the values
/// as long as there is room, and knows which of them are still valid.
///
/// ```swift
/// let articles = try store.cache(prefix: "articles/")
/// try await articles.put("42", bytes, labels: ["sport"], hash: etag, maxAge: .seconds(60))
/// if let article = try articles.entry(forKey: "42"), article.isValid { ... }
/// ```
/// Whether a value is there and whether it is valid are two things: one that is valid no more stays
/// until it has to make room, and serves while there is no network. What the user owns under the
/// same prefix can be read here, counts as valid, and is never written over or given up.
public struct Cache<Value: Sendable>: Sendable {
  /// The store that holds the cache's entries.
  public let store: Store
  let region: CacheRegion
  let coding: CacheCoding<Value>

  /// The rules of the cache: how long entries are valid and how many it keeps.
  public var policy: CachePolicy { region.policy }

  /// The prefix with which the keys of all entries of this cache begin in the store.
  public var prefix: Key { Key(region.prefix) }

  /// The facts about the cache now: its policy, entries, bytes and counts.
  public var status: CacheStatus {
    get throws(TidemarkError) { try region.status() }
  }

  /// The counts of reads, hits, misses and evictions of this cache.
  public var counts: CacheCounts { region.counts }

  /// The number of entries in the cache. Entries that the user has written over or deleted count
  /// until they would have made room.
  public var count: Int {
    get throws(TidemarkError) { try region.status().entries }
  }

  /// The time of the store's clock.
  package var now: Timestamp { region.now }

  // MARK: Reading

  /// Reads the value of a key, valid or stale.
  /// - Parameter key: the key, without the cache's prefix.
  /// - Returns: nil when there is none.
  /// - Throws: `coding` where the value cannot be decoded, `damaged`, `closed`, `inputOutput`.
  @inlinable
  public func value(forKey key: some BytesConvertible) throws(TidemarkError) -> Value? {
    try key.withBytes { (key) throws(TidemarkError) in try value(atKey: key) }
  }

  @usableFromInline
  func value(atKey key: RawSpan) throws(TidemarkError) -> Value? {
    guard let bytes = try region.knownValue(ofKey: key) else { return try foundValue(key) }
    return try decode(bytes)
  }

  /// Separate, so that a hit does not pay for the metadata of `CachedEntry<Value>`.
  private func foundValue(_ key: RawSpan) throws(TidemarkError) -> Value? {
    try find(full([UInt8](copying: key)))?.value
  }

  /// Reads an entry: the value of a key with its hash, labels, validity and use.
  /// - Parameter key: the key, without the cache's prefix.
  /// - Returns: nil when there is none.
  public func entry(
    forKey key: some BytesConvertible
  ) throws(TidemarkError) -> CachedEntry<Value>? {
    try region.load()
    return try find(full(key), walks: true)
  }

  /// Opens the attachment of a cached value, to read its content.
  /// - Parameter key: the key, without the cache's prefix.
  /// - Returns: nil where there is none, or its content is at a peer.
  /// - Throws: see ``StoreReader/attachment(forKey:)``.
  public func attachment(
    forKey key: some BytesConvertible
  ) throws(TidemarkError) -> AttachmentReader? {
    guard try entry(forKey: key)?.attachment != nil else { return nil }
    return try store.attachment(forKey: full(key))
  }

  /// Whether a key has a value that is valid now; false when it is absent or stale.
  public func isValid(_ key: some BytesConvertible) throws(TidemarkError) -> Bool {
    let key = full(key)
    guard let slot = try region.engine.reader.slot(ofKey: key.rawSpan), !slot.isDeleted else {
      return false
    }
    if !slot.size.isCached { return true }
    if let isValid = region.isValid(slot.sequence) { return isValid }
    guard let found = try region.find(key) else { return false }
    return found.validity?.isValid(
      at: region.now, defaultAge: region.policy.maxAgeMilliseconds) ?? true
  }

  /// Reads all entries, valid or stale, in the order of keys.
  /// - Parameters:
  ///   - labels: only entries with these.
  ///   - limit: most entries to return; nil for all.
  /// - Returns: the entries; reading them all is no use of any.
  public func entries(
    labels: LabelFilter = .everything, limit: Int? = nil
  ) throws(TidemarkError) -> [CachedEntry<Value>] {
    try region.load()
    var query = EntryQuery(prefix: region.prefix, labels: labels)
    query.limit = limit
    var rows = try store.entries(query)
    var found: [CachedEntry<Value>] = []
    while let entry = try rows.next() {
      found.append(try cached(entry, validity(of: entry)))
    }
    return found
  }

  /// A key's value with what is known about it; counts as a read.
  /// - Parameters:
  ///   - key: with the cache's prefix.
  ///   - walks: whether to read the key's history for the time of its creation.
  func find(
    _ key: [UInt8], walks: Bool = false
  ) throws(TidemarkError) -> CachedEntry<Value>? {
    guard let found = try region.find(key) else {
      region.count { $0.misses += 1 }
      return nil
    }
    return try cached(key, found, walks: walks, isUse: true)
  }

  /// Whether a key has a value, valid or stale. The call does not count as a use of the entry.
  /// - Parameter key: the key, without the cache's prefix.
  public func contains(_ key: some BytesConvertible) throws(TidemarkError) -> Bool {
    let slot = try region.engine.reader.slot(ofKey: full(key).rawSpan)
    return slot.map { !$0.isDeleted } ?? false
  }

  /// A key's value with what is known about it, without counting it as a use.
  package func peek(_ key: Key) throws(TidemarkError) -> CachedEntry<Value>? {
    let key = full(key)
    return try region.find(key).map { (found) throws(TidemarkError) in try cached(key, found) }
  }

  /// The keys that begin with another one; to ask is no use of them.
  package func keys(beginningWith beginning: Key) throws(TidemarkError) -> [Key] {
    var rows = try store.keys(EntryQuery(prefix: full(beginning), values: false))
    var found: [Key] = []
    while let key = try rows.next() {
      found.append(Key(Array(key.bytes.dropFirst(region.prefix.count))))
    }
    return found
  }

  /// How long an entry is valid; nil for what the user owns.
  private func validity(of entry: Entry) throws(TidemarkError) -> Validity? {
    guard entry.storageClass == .cache else { return nil }
    guard let newest = try region.engine.reader.entryIfKept(at: entry.sequence) else {
      return Validity(validated: entry.validated, maxAge: entry.maxAgeSeconds)
    }
    return try region.validity(of: newest, region.engine.reader.info(newest))
  }

  private func cached(
    _ key: [UInt8], _ found: CacheRegion.Found, walks: Bool = false, isUse: Bool = false
  ) throws(TidemarkError) -> CachedEntry<Value> {
    try cached(
      Entry(
        key: key, value: found.value, info: found.info,
        created: store.source.created(found.info, walks: walks)), found.validity, isUse: isUse)
  }

  private func cached(
    _ entry: Entry, _ validity: Validity?, isUse: Bool = false
  ) throws(TidemarkError) -> CachedEntry<Value> {
    let key = Key(Array(entry.key.bytes.dropFirst(region.prefix.count)))
    // A value that cannot be decoded is no hit.
    let value = try decode(entry.value)
    let isMarked = validity?.maxAge == Validity.staleMark
    let reading = region.noteReading(validity, of: entry.sequence, isUse: isUse)
    let use = reading.use
    return CachedEntry(
      key: key, value: value, labels: entry.labels, hash: entry.hash,
      attachment: entry.attachment,
      isValid: reading.isValid, validUntil: reading.end.map { Timestamp(milliseconds: $0) },
      created: entry.created, updated: entry.updated,
      validated: isMarked ? entry.updated : validity?.validated ?? entry.updated,
      lastUse: use.map { Timestamp(milliseconds: $0.time) }, uses: Int(use?.count ?? 0),
      isOwned: entry.storageClass == .owned)
  }

  func decode(_ bytes: [UInt8]) throws(TidemarkError) -> Value {
    do { return try coding.decode(bytes) } catch {
      throw TidemarkError(.coding, "a cached value cannot be decoded", cause: error)
    }
  }

  /// A key with the cache's prefix.
  @inlinable
  func full(_ key: some BytesConvertible) -> [UInt8] {
    var full: [UInt8] = []
    key.withBytes { append(key: $0, to: &full) }
    return full
  }

  @usableFromInline
  func append(key: RawSpan, to full: inout [UInt8]) {
    full.reserveCapacity(region.prefix.count + key.byteCount)
    full.append(contentsOf: region.prefix)
    full.append(copying: key)
  }
}
