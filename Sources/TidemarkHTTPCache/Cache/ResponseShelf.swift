internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The stored responses of an ``HTTPCache`` in its store.
///
/// The key of a response is its address. Where responses depend on fields of the request, a list of
/// these fields stands there, and each response under a key of its own, which has the list's number
/// in it: without the list, none of them is found again.
final class ResponseShelf: Sendable {
  /// A response with where it is.
  struct Found: Sendable {
    var key: Key
    var response: StoredResponse
    var attachment: AttachmentReference?
    /// Whether nobody has marked it as stale, and the clock has not jumped.
    var isValid: Bool
  }

  let cache: Cache<[UInt8]>
  private let mostVariants: Int
  /// The addresses that are being asked for: how often, and how often each was made void meanwhile.
  private let asked = Lock<[String: (requests: Int, voids: Int)]>([:])

  init(_ cache: Cache<[UInt8]>, variants: Int) {
    self.cache = cache
    mostVariants = max(1, variants)
  }

  /// Milliseconds since 1970.
  var now: Int64 { cache.now.milliseconds }

  // MARK: Reading

  /// The stored response to a request.
  func find(_ address: HTTPAddress, _ headers: [String: String]) throws(TidemarkError) -> Found? {
    let key = Self.key(address)
    guard let entry = try readable(key) else { return nil }
    guard let variants = Variants(entry.value) else { return Self.found(key, entry) }
    let variant = variants.key(key, variants.vary.selecting(headers))
    return try readable(variant).flatMap { Self.found(variant, $0) }
  }

  private func readable(_ key: Key) throws(TidemarkError) -> CachedEntry<[UInt8]>? {
    // The user's own entries are no responses.
    guard let entry = try cache.entry(forKey: key), !entry.isOwned else { return nil }
    return entry
  }

  private static func found(_ key: Key, _ entry: CachedEntry<[UInt8]>) -> Found? {
    guard let response = StoredResponse(entry.value) else { return nil }
    return Found(
      key: key, response: response, attachment: entry.attachment, isValid: entry.isValid)
  }

  /// - Returns: nil where the content is not here.
  func body(of found: Found) throws(TidemarkError) -> AttachmentReader? {
    guard let reference = found.attachment else { return nil }
    return try cache.store.attachment(reference)
  }

  static func key(_ address: HTTPAddress) -> Key {
    Key(Array((address.path.isEmpty ? "\(address)/" : "\(address)").utf8))
  }

  // MARK: Writing

  /// Notes that an address is being asked for.
  /// - Returns: how often it was made void so far.
  func begin(_ address: HTTPAddress) -> Int {
    asked.withLock { asked in
      asked["\(address)", default: (0, 0)].requests += 1
      return asked["\(address)"]?.voids ?? 0
    }
  }

  /// Notes that an address is being asked for no more.
  func end(_ address: HTTPAddress) {
    asked.withLock { asked in
      asked["\(address)"]?.requests -= 1
      if asked["\(address)"]?.requests ?? 0 <= 0 { asked["\(address)"] = nil }
    }
  }

  /// Keeps a response.
  /// - Parameter voids: what ``begin(_:)`` has returned: an answer that was under way while its
  ///   address was made void is not kept.
  func keep(
    _ response: StoredResponse, _ attachment: StagedAttachment?, of address: HTTPAddress,
    _ headers: [String: String], voids: Int
  ) async throws(TidemarkError) {
    guard let vary = Vary(response), response.encoded() != nil else {
      return try await void(address)
    }
    let key = Self.key(address)
    let former = try cache.peek(key).flatMap { Variants($0.value) }
    guard isCurrent(address, voids) else { return }
    if vary.names.isEmpty {
      try await remove(former?.keys(key) ?? [])
      return try await put(key, response, attachment, address)
    }
    var variants = Variants(vary: vary)
    if let former {
      if former.vary == vary { variants = former } else { try await remove(former.keys(key)) }
    }
    let variant = variants.key(key, vary.selecting(headers))
    let (isNew, dropped) = variants.add(variant, after: key, most: mostVariants)
    if isNew {
      try await cache.put(key, variants.encoded(), labels: Self.labels(address))
      try await remove(dropped)
    }
    try await put(variant, response, attachment, address)
  }

  /// Keeps what is known anew of a response whose body is here.
  func freshen(_ found: Found, of address: HTTPAddress, voids: Int) async throws(TidemarkError) {
    guard isCurrent(address, voids) else { return }
    let attachment = try found.attachment.map { (reference) throws(TidemarkError) in
      try cache.store.staged(reference)
    }
    guard attachment ?? nil != nil || found.attachment == nil else { return }
    try await put(found.key, found.response, attachment ?? nil, address)
  }

  private func put(
    _ key: Key, _ response: StoredResponse, _ attachment: StagedAttachment?, _ address: HTTPAddress
  ) async throws(TidemarkError) {
    guard let bytes = response.encoded() else { return }
    let tag = response.headers["etag"].map { Array($0.utf8) }
    let freshness = Freshness(response, now: now)
    try await cache.put(
      key, bytes, labels: Self.labels(address), hash: tag.flatMap { $0.count <= 64 ? $0 : nil },
      maxAge: .seconds(max(0, freshness.lifetime - freshness.age)), attachment: attachment)
  }

  /// Responses have the name of their server as label.
  private static func labels(_ address: HTTPAddress) -> [EntryLabel] {
    address.authority.utf8.count <= 255 ? [EntryLabel(address.authority)] : []
  }

  private func isCurrent(_ address: HTTPAddress, _ voids: Int) -> Bool {
    asked.withLock { $0["\(address)"]?.voids ?? voids } == voids
  }

  // MARK: Removing

  /// Gives up all that is stored of an address (RFC 9111, 4.4).
  func void(_ address: HTTPAddress) async throws(TidemarkError) {
    asked.withLock { $0["\(address)"]?.voids += 1 }
    let key = Self.key(address)
    guard let entry = try cache.peek(key), !entry.isOwned else { return }
    let variants = Variants(entry.value)?.keys(key) ?? []
    try await cache.remove(keys: [key] + variants)
  }

  private func remove(_ keys: [Key]) async throws(TidemarkError) {
    if !keys.isEmpty { try await cache.remove(keys: keys) }
  }
}

/// The list that stands under an address whose responses depend on fields of the request.
struct Variants: Sendable, Hashable {
  private static let mark = "tidemark-http-vary 1"

  /// The fields.
  let vary: Vary
  /// Tells this list from any other one of the address.
  private let number: UInt64
  /// The ends of the keys of the variants, the newest last.
  private var ends: [String] = []

  init(vary: Vary) {
    self.vary = vary
    number = UInt64.random(in: .min ... .max)
  }

  /// - Returns: nil for bytes that are no such list.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= 65_536, bytes.starts(with: Array(Self.mark.utf8)) else { return nil }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    guard lines.count >= 3, lines[0] == Self.mark, let number = UInt64(lines[1], radix: 16),
      let vary = Vary(names: HTTPText.list(lines[2]))
    else { return nil }
    self.vary = vary
    self.number = number
    ends = Array(lines.dropFirst(3))
  }

  func encoded() -> [UInt8] {
    let lines = [
      Self.mark, String(number, radix: 16), vary.names.joined(separator: ","),
    ]
    return Array((lines + ends).joined(separator: "\n").utf8)
  }

  /// The key of the variant for a request.
  func key(_ key: Key, _ selecting: String) -> Key {
    let hash = SHA256.hash(Array(selecting.utf8).rawSpan).prefix(16)
    return Key(
      key.bytes + Array("#\(String(number, radix: 16))-\(AttachmentID.text(Array(hash)))".utf8))
  }

  /// The keys of all variants.
  func keys(_ key: Key) -> [Key] { ends.map { Key(key.bytes + Array($0.utf8)) } }

  /// Notes a variant; the oldest ones make room.
  mutating func add(_ variant: Key, after key: Key, most: Int) -> (isNew: Bool, dropped: [Key]) {
    let end = String(decoding: variant.bytes.dropFirst(key.bytes.count), as: UTF8.self)
    guard !ends.contains(end) else { return (false, []) }
    ends.append(end)
    let dropped = ends.prefix(max(0, ends.count - most))
    ends.removeFirst(dropped.count)
    return (true, dropped.map { Key(key.bytes + Array($0.utf8)) })
  }
}
