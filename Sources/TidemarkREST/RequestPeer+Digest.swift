internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The keys and fingerprints of all records of a back end, read from its list to compute digests.
struct Listing: Sendable {
  struct Item: Sendable {
    var fingerprint: ContentFingerprint
    var alias: KeyAlias?
    /// The content; nil once `mostBytes` are kept.
    var state: RequestState?
  }

  /// About how many bytes of contents are kept.
  private static let mostBytes = 16 << 20

  private(set) var items: [[UInt8]: Item] = [:]
  private var bytes = 0
  private var keys: [[UInt8]] = []
  private var table = DigestTable(paths: [[]])
  /// The offset that was assigned when the list was read, as of which its digests are.
  var offset: UInt64 = 0

  mutating func take(_ rows: [KeyedChange], _ scope: SyncScope) throws(PeerError) {
    for row in rows {
      items[row.key] = nil
      guard case .value(let content, _) = row.change.state,
        scope.contains(key: row.key, labels: content.labels)
      else { continue }
      guard items.count < DigestTable.rowLimit else {
        throw PeerError(
          .failed, "a list of more than \(DigestTable.rowLimit) keys cannot be compared")
      }
      bytes += row.key.count + content.value.count
      items[row.key] = Item(
        fingerprint: ContentFingerprint(
          key: row.key.rawSpan, value: content.value.rawSpan, labels: content.labelSet),
        alias: row.change.alias, state: bytes <= Self.mostBytes ? row.change.state : nil)
    }
  }

  /// Builds the table of fingerprints once all pages are read.
  mutating func finish() {
    for (key, item) in items {
      table.add(
        DigestTable.Row(
          hash: ContentFingerprint.keyHash(key.rawSpan), fingerprint: item.fingerprint,
          offset: UInt64(keys.count)))
      keys.append(key)
    }
    table.finish()
  }

  /// The parts of a digest: for each path the sums of its 256 parts, or its keys where few.
  func parts(_ paths: [[UInt8]], _ position: FeedPosition) throws(PeerError) -> [DigestPart] {
    // Only sorted paths, none within another, are valid: see `DigestRequest`.
    guard !paths.isEmpty, zip(paths, paths.dropFirst()).allSatisfy({ !$1.starts(with: $0) }),
      paths.allSatisfy({ $0.count <= DigestTable.pathBytes })
    else { throw PeerError(.malformed, "the parts make no sense") }
    return paths.map { path in
      table.part(path) { rows in rows.map { (keys[Int($0.offset)], position) } }
    }
  }
}

/// Detects a back end's list whose tokens run in a cycle, which would never end: each token is
/// compared with a saved one, which is replaced after twice as many pages each time (Brent's
/// algorithm).
struct TokenWalk: Sendable {
  private var known: String?
  /// The token of the last page. A page requested with another one is not its successor, so the
  /// detection starts again.
  private var last: String?
  private var (pages, most) = (0, 1)

  /// - Parameter token: the token that the page was requested with.
  /// - Throws: `failed` where tokens repeat.
  mutating func note(_ page: RequestPage, askedWith token: String?) throws(PeerError) {
    if token != last || !page.hasMore { self = TokenWalk() }
    guard page.hasMore else { return }
    last = page.token
    guard page.token != token, page.token != known else {
      throw PeerError(
        .failed,
        "the back end's list has more, and gives the token \(page.token.prefix(64)) again; each "
          + "page needs a new one")
    }
    pages += 1
    if pages == most { (known, pages, most) = (page.token, 0, most * 2) }
  }
}

extension RequestPeer {
  /// Answers with digests of the back end's records, computed from a full list. After a token has
  /// expired, the store finds by them which records were deleted meanwhile.
  /// - Throws: `failed` if lists do not have all records; the errors of `fetch`.
  public func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    guard capabilities.hasDigest else {
      throw PeerError(.failed, "the back end has no list of everything to compare")
    }
    let isFirst = request.paths == [[]]
    let known = try state.withLock { (memory: inout RequestMemory) throws in
      try memory.checkOpen()
      return isFirst ? nil : memory.listing
    }
    let listing: Listing
    if let known { listing = known } else { listing = try await listEverything(request) }
    let position = positions.position(listing.offset)
    let parts = try listing.parts(request.paths, position)
    return state.withLock {
      DigestAnswer(position: position, range: positions.range(head: $0.head), parts: parts)
    }
  }

  private func listEverything(_ request: DigestRequest) async throws -> Listing {
    var listing = Listing()
    let token = try await everyPage(request.aliases) { try listing.take($0, request.scope) }
    listing.finish()
    state.withLock { memory in
      listing.offset = memory.nextOffset(isOfOther: true)
      memory.note(token, at: listing.offset)
      memory.listing = listing
    }
    return listing
  }

  /// Reads all pages of the list from the beginning.
  /// - Returns: the token of the last page.
  func everyPage(
    _ aliases: KnownAliases?, _ body: ([KeyedChange]) throws -> Void
  ) async throws -> String {
    guard fetch != nil else { return "" }
    var walk = TokenWalk()
    var token: String?
    var names = ListedNames(isOfEverything: true)
    while true {
      try Task.checkCancellation()
      let page = try await list(token, &walk)
      try body(try keyed(page, aliases, &names))
      token = page.token
      guard page.hasMore else { return page.token }
    }
  }

  /// Fetches a page of the list.
  func list(_ token: String?, _ walk: inout TokenWalk) async throws -> RequestPage {
    guard let fetch else { throw PeerError(.failed, "the peer was given no list") }
    do {
      let page = try await ask { try await fetch(token) }
      try walk.note(page, askedWith: token)
      return page
    } catch let error as PeerError where error.kind == .cursorGone && token == nil {
      throw PeerError(.failed, "the back end knows no beginning of its list: \(error.message)")
    }
  }
}
