internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The stored responses of an ``HTTPCache`` in its store.
///
/// The key of a response is its address. Where responses depend on fields of the request, a list of
/// these fields stands there, and each response under a key of its own, which has the list's number
/// in it: without the list, none of them is found again. Parts of a body stand behind the key of
/// their response, with their place and what tells their content from another one of the address.
///
/// An answer is kept only if nothing was said meanwhile: its ``Stamp`` knows what was there before.
final class ResponseStore: Sendable {
  /// A response with where it is.
  struct Found: Sendable {
    var key: Key
    var response: StoredResponse
    var attachment: AttachmentReference?
    var content: StoredContent
    /// Whether nobody has marked it as stale, and the clock has not jumped.
    var isValid: Bool
  }

  /// The state of an address when a server was asked.
  struct Stamp: Sendable {
    let question: CacheQuestion
    /// The sequences of what was there.
    fileprivate(set) var sequences: [Key: UInt64] = [:]
    /// That of the response itself.
    fileprivate(set) var response: UInt64 = 0
  }

  let cache: Cache<[UInt8]>
  let policy: HTTPCachePolicy

  init(_ cache: Cache<[UInt8]>, _ policy: HTTPCachePolicy) {
    self.cache = cache
    self.policy = policy
  }

  /// Milliseconds since 1970.
  var now: Int64 { cache.now.milliseconds }

  // MARK: Reading

  /// The stored response to a request, as far as its body is here.
  func find(_ address: HTTPAddress, _ headers: [String: String]) throws(TidemarkError) -> Found? {
    var key = Self.key(address)
    var stored = try readable(key)
    if let variants = stored.flatMap({ Variants($0.value) }) {
      key = variants.key(key, headers)
      stored = try readable(key)
    }
    guard let entry = stored, let response = StoredResponse(entry.value),
      let content = try content(key, response, entry.attachment)
    else { return nil }
    return Found(
      key: key, response: response, attachment: entry.attachment, content: content,
      isValid: entry.isValid)
  }

  private func readable(_ key: Key) throws(TidemarkError) -> CachedEntry<[UInt8]>? {
    // The user's own entries are no responses.
    guard let entry = try cache.entry(forKey: key), !entry.isOwned else { return nil }
    return entry
  }

  /// - Returns: nil where the body is not here any more.
  func content(
    _ key: Key, _ response: StoredResponse, _ attachment: AttachmentReference?
  ) throws(TidemarkError) -> StoredContent? {
    guard response.isPartial else {
      return try source(response.body, attachment).map { StoredContent($0) }
    }
    var pieces: [StoredContent.Piece] = []
    for range in try parts(key, response) {
      guard let entry = try readable(Self.key(of: range, response, key)),
        let source = try source(entry.value, entry.attachment), source.length == range.count
      else { continue }
      pieces.append(StoredContent.Piece(range: range, source: source))
    }
    return StoredContent(pieces: pieces, total: response.length ?? 0)
  }

  private func source(
    _ bytes: [UInt8], _ attachment: AttachmentReference?
  ) throws(TidemarkError) -> StoredContent.Source? {
    guard let attachment else { return .bytes(bytes) }
    return try cache.store.attachment(attachment).map { .attachment($0) }
  }

  /// The longest address that is a key as it is; the key of a longer one ends with its hash.
  private static let mostKeyBytes = 2_048

  static func key(_ address: HTTPAddress) -> Key {
    let text = Array((address.path.isEmpty ? "\(address)/" : "\(address)").utf8)
    guard text.count > mostKeyBytes else { return Key(text) }
    // No address has the mark that comes between.
    let hash = AttachmentID.text(SHA256.hash(text.rawSpan))
    return Key(text.prefix(mostKeyBytes / 2) + Array("#\(hash)".utf8))
  }

  private static let partMark = Array("#part-".utf8)

  /// The key of a part of a response's body; without a part, the beginning of all of them.
  static func key(of part: Range<Int>? = nil, _ response: StoredResponse, _ key: Key) -> Key {
    let content = "\(response.headers["etag"] ?? "") \(response.length ?? 0)"
    let hash = AttachmentID.text(Array(SHA256.hash(Array(content.utf8).rawSpan).prefix(8)))
    let end = "\(hash)-" + (part?.httpText ?? "")
    return Key(key.bytes + partMark + Array(end.utf8))
  }

  /// The parts of a response's body that are here, by their beginnings.
  func parts(_ key: Key, _ response: StoredResponse) throws(TidemarkError) -> [Range<Int>] {
    let prefix = Self.key(response, key)
    let all = try cache.keys(beginningWith: prefix).compactMap { key in
      Range(httpText: String(decoding: key.bytes.dropFirst(prefix.bytes.count), as: UTF8.self))
    }
    return all.filter { $0.upperBound <= response.length ?? 0 }
      .sorted { ($0.lowerBound, $1.upperBound) < ($1.lowerBound, $0.upperBound) }
  }

  // MARK: Stamps

  /// The state of an address now.
  func stamp(_ address: HTTPAddress, _ headers: [String: String]) throws(TidemarkError) -> Stamp {
    // In this order: whatever is said between counts as later.
    let key = Self.key(address)
    var stamp = Stamp(question: cache.ask(about: key))
    stamp.response = try cache.sequence(of: key)
    stamp.sequences[key] = stamp.response
    if let variants = try cache.peek(key).flatMap({ Variants($0.value) }) {
      let variant = variants.key(key, headers)
      stamp.response = try cache.sequence(of: variant)
      stamp.sequences[variant] = stamp.response
    }
    return stamp
  }

  /// Whether nothing was given up, marked or put by others since that concerns an address.
  func isSilent(since stamp: Stamp, _ address: HTTPAddress) -> Bool {
    stamp.question.isCurrent(labels: Self.labels(address))
  }

  /// Whether nothing was said of an address since, and an entry of it is what it was, or made room.
  func isCurrent(
    _ key: Key?, _ stamp: Stamp, _ address: HTTPAddress
  ) throws(TidemarkError) -> Bool {
    guard isSilent(since: stamp, address) else { return false }
    guard let key else { return true }
    let sequence = try cache.sequence(of: key)
    return sequence == 0 || sequence == stamp.sequences[key] ?? 0
  }

  // MARK: Writing

  /// Writes a response, if it is still wanted.
  /// - Returns: whether it was.
  func put(
    _ key: Key, _ response: StoredResponse, _ attachment: StagedAttachment?,
    _ address: HTTPAddress, since stamp: Stamp,
    if isWanted: @escaping @Sendable () throws(TidemarkError) -> Bool
  ) async throws(TidemarkError) -> Bool {
    guard let bytes = response.encoded() else { return false }
    let former = try partKeys(key)
    let tag = response.headers["etag"].map { Array($0.utf8) }
    let freshness = Freshness(response, now: now)
    guard
      try await cache.put(
        key, bytes, labels: Self.labels(address), hash: tag.flatMap { $0.count <= 64 ? $0 : nil },
        maxAge: .seconds(max(0, freshness.lifetime - freshness.age)), attachment: attachment,
        answering: stamp.question, if: isWanted)
    else { return false }
    let kept = Self.key(response, key).bytes
    try await remove(former.filter { !response.isPartial || !$0.bytes.starts(with: kept) })
    return true
  }

  /// Writes what belongs to a response: a list of variants, or a part of a body.
  func put(
    _ key: Key, _ bytes: [UInt8], _ attachment: StagedAttachment?, _ address: HTTPAddress,
    since stamp: Stamp, if isWanted: @escaping @Sendable () throws(TidemarkError) -> Bool = { true }
  ) async throws(TidemarkError) -> Bool {
    try await cache.put(
      key, bytes, labels: Self.labels(address), maxAge: .zero, attachment: attachment,
      answering: stamp.question, if: isWanted)
  }

  /// Responses have the name of their server as label.
  private static func labels(_ address: HTTPAddress) -> [EntryLabel] {
    address.authority.utf8.count <= 255 ? [EntryLabel(address.authority)] : []
  }

  /// The keys of all parts under that of a response, also where it has made room itself.
  func partKeys(_ key: Key) throws(TidemarkError) -> [Key] {
    try cache.keys(beginningWith: Key(key.bytes + Self.partMark))
  }

  func response(_ key: Key) throws(TidemarkError) -> StoredResponse? {
    try cache.peek(key).flatMap { StoredResponse($0.value) }
  }

  // MARK: Removing

  /// Gives up all that is stored of an address (RFC 9111, 4.4), and what is asked for now.
  func void(_ address: HTTPAddress) async throws(TidemarkError) {
    let key = Self.key(address)
    let variants = try cache.peek(key).flatMap { Variants($0.value) }?.keys(key) ?? []
    try await remove([key] + variants)
  }

  /// Gives up responses with their parts.
  func remove(_ keys: [Key]) async throws(TidemarkError) {
    guard !keys.isEmpty else { return }
    var all = keys
    for key in keys { all += try partKeys(key) }
    try await cache.remove(keys: all)
  }
}
