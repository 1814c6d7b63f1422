internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// An answer that is made, and may go out once everything that it tells of is on the disk.
///
/// A call is answered in two steps, so that nothing is locked while the disk works and many calls
/// wait for one sync. The answer is made of what can be seen, of which the last may not be on the
/// disk yet; ``SyncHandler/settle(_:)`` waits for that. So the rule is one for all calls, those
/// that read as well as those that write: **nobody is told what a cut of the power could still
/// take back.** A reader never hears of a batch before its writer could have, a batch that is sent
/// again is not answered from a mark that may be lost, and when the sync fails, every answer that
/// depended on it fails.
public struct StagedAnswer: Sendable {
  /// The answer.
  public let message: WireMessage
  /// Everything that it tells of lies up to here.
  let through: Position
  /// Its page, which others may get as well.
  let page: SharedPage?
  /// Whether somebody else got the page before.
  let isShared: Bool
  /// A mark of so many verdicts, in front of a page, is not worth compressing by itself.
  private static let mostVerdicts = 16

  /// - Parameter position: where what it tells of ends; nil for the end of the range that it has.
  init(
    _ message: WireMessage, through position: Position? = nil, page: SharedPage? = nil,
    isShared: Bool = false
  ) {
    self.message = message
    through = position ?? message.range?.headPosition ?? .beginning
    (self.page, self.isShared) = (page, isShared)
  }

  /// The answer as a frame; a page that somebody else got before is encoded once for all others.
  /// - Throws: ``PeerError`` as ``WireCoder/encode(_:)`` does.
  public func frame(_ coder: WireCoder) throws(PeerError) -> [UInt8] {
    guard isShared, let page, case .pullAnswer(let answer) = message,
      answer.mark.verdicts.count <= Self.mostVerdicts
    else {
      return try coder.encode(message)
    }
    return try page.frame(answer, coder)
  }
}

extension SyncHandler {
  /// Makes the answer to a request of any kind, for servers of one's own. It must not go out before
  /// ``settle(_:)`` has returned.
  /// - Parameters:
  ///   - message: the request.
  ///   - access: what the caller's authorization reaches.
  ///   - lookedThrough: the cursor of an empty page that the same pull was answered with before, if
  ///     that has not gone out: what was looked at for it is not looked at again.
  ///   - other: the answer to somebody else. A pull that asks this handler for the same, with the
  ///     same authorization, gets its page without another look; see ``StagedAnswer/frame(_:)``.
  /// - Throws: ``PeerError``: `malformed` for a message that is no request.
  public func stage(
    _ message: WireMessage, access: SyncAccess = .everything,
    lookedThrough: Position = .beginning, sharing other: StagedAnswer? = nil
  ) throws(PeerError) -> StagedAnswer {
    try answering {
      switch message {
      case .helloRequest(let request):
        return StagedAnswer(.helloAnswer(try stageHello(request, access)))
      case .pushRequest(let request):
        return StagedAnswer(.pushAnswer(try stagePush(request, access)))
      case .pullRequest(let request):
        let (answer, page, isShared) = try stagePull(
          request, access, lookedThrough, sharing: other?.page)
        return StagedAnswer(.pullAnswer(answer), page: page, isShared: isShared)
      case .valuesRequest(let request):
        return StagedAnswer(.valuesAnswer(try stageValues(request, access)))
      case .digestRequest(let request):
        return StagedAnswer(.digestAnswer(try stageDigest(request, access)))
      case .downloadRequest(let request):
        let answer = try stageDownload(request, access)
        return StagedAnswer(.downloadAnswer(answer), through: request.position)
      case .attachRequest(let request):
        return StagedAnswer(.attachAnswer(try stageAttach(request, access)))
      case .fetchRequest(let request):
        return StagedAnswer(.fetchAnswer(try stageFetch(request, access)))
      default:
        throw PeerError(.malformed, "the message is no request")
      }
    }
  }

  /// Whether an answer may go out.
  public func isSettled(_ answer: StagedAnswer) -> Bool {
    guard let view = try? feed.look(FeedQuestion()) else { return false }
    return answer.through.offset <= view.durable && view.range.contains(answer.through)
  }

  /// Returns once an answer may go out. Callers on several threads share a sync.
  /// - Throws: ``PeerError``: `unavailable` when the disk has failed; whether what the answer tells
  ///   of is there after the next opening is not known then.
  public func settle(_ answer: StagedAnswer) throws(PeerError) {
    try settle(through: answer.through)
  }

  func settle(through position: Position) throws(PeerError) {
    if PlantedSyncBug.isOn(.toldBeforeDurable) { return }
    do throws(TidemarkError) { try feed.settle(through: position) } catch { throw PeerError(error) }
  }

  /// Makes an answer, with a range that holds everything that it tells of; returns once that is on
  /// the disk.
  func settled<Answer>(
    _ range: (Answer) -> FeedRange, _ body: () throws -> Answer
  ) throws(PeerError) -> Answer {
    let answer = try answering(body)
    try settle(through: range(answer).headPosition)
    return answer
  }

  /// Answers a request of any kind, for servers of one's own.
  /// - Throws: ``PeerError``: `malformed` for a message that is no request.
  public func answer(
    _ message: WireMessage, access: SyncAccess = .everything
  ) throws(PeerError) -> WireMessage {
    let answer = try stage(message, access: access)
    try settle(answer)
    return answer.message
  }
}

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
