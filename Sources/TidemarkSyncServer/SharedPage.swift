internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// A page that ends where the feed does. Callers that were woken by the same push ask for the same,
/// so it is read and encoded once for all of them; the range, the mark and the reach in front of
/// the entries are each caller's.
final class SharedPage: Sendable {
  let page: PageReader
  /// The entries as they stand in frames.
  private let body = Lock<(coder: WireCoder, body: WireBody)?>(nil)

  /// - Returns: nil when nobody else gets this page: there is more, or its reader wrote some of it.
  init?(_ page: PageReader) {
    guard page.through >= page.range.head, !page.entries.isEmpty, !page.request.ownOnly,
      !page.writers.contains(page.request.replica)
    else { return nil }
    self.page = page
  }

  /// Whether a page, of which nothing was read yet, would be this one: another cursor makes no
  /// difference where no entry lies between the two.
  func isPage(of other: PageReader) -> Bool {
    var request = other.request
    request.replica = page.request.replica
    request.waitMilliseconds = page.request.waitMilliseconds
    if !page.hasFormerLabels { request.after = page.request.after }
    return other.handler === page.handler && other.range == page.range && request == page.request
      && other.historyFrom == page.historyFrom && page.start <= other.start
      && other.start < page.first && other.access == page.access
      && !page.writers.contains(other.request.replica)
  }

  /// An answer with this page, as a frame.
  func frame(_ answer: PullAnswer, _ coder: WireCoder) throws(PeerError) -> [UInt8] {
    let body = try body.withLock {
      (known: inout (coder: WireCoder, body: WireBody)?)
        throws(PeerError) in
      if let known, known.coder == coder { return known.body }
      let made = try coder.body(of: answer)
      known = (coder, made)
      return made
    }
    return try coder.encode(answer, body)
  }
}
