internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// An answer that must not be sent before everything in it is durable.
///
/// A call is answered in two steps, so that no lock is held while the disk works, and many calls
/// share one sync. The answer is made from all entries that can be read, the last of which may not
/// be durable yet; ``SyncHandler/settle(_:)`` waits for that. So one rule holds for calls that read
/// and for calls that write: **no answer contains what a power failure could still take back.** A
/// reader never sees a batch that its writer may yet lose, a batch that is sent again is not
/// answered from a mark that may be lost, and when a sync fails, every answer that depends on it
/// fails.
public struct StagedAnswer: Sendable {
  /// The answer to the caller's request. Do not send it before ``SyncHandler/settle(_:)`` returns.
  public let message: WireMessage
  /// Everything in the answer is at or before this position of the feed.
  let through: FeedPosition
  /// The page of a pull's answer, where other callers may get it as well.
  let page: SharedPage?
  /// Whether the page was read for another caller.
  let isShared: Bool
  /// A mark of so few verdicts may stay uncompressed in front of a shared, compressed page.
  private static let mostVerdicts = 16

  /// - Parameter position: up to where it must be durable; nil for the end of the message's range.
  init(
    _ message: WireMessage, through position: FeedPosition? = nil, page: SharedPage? = nil,
    isShared: Bool = false
  ) {
    self.message = message
    through = position ?? message.range?.headPosition ?? .beginning
    (self.page, self.isShared) = (page, isShared)
  }

  /// Encodes the answer as a frame. If several callers get the same page, it is encoded once for
  /// all of them.
  /// - Parameter coder: encodes the message.
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
  /// Makes the answer to a request of any kind, for programs with a server of their own. It must
  /// not be sent before ``settle(_:)`` has returned.
  /// - Parameters:
  ///   - message: the request.
  ///   - access: what the caller's authorization reaches.
  ///   - lookedThrough: the cursor of an empty answer that was made to the same pull before and not
  ///     sent, as the pull waits: the feed is not read again up to there.
  ///   - other: the answer to another caller. A pull that asks this handler for the same page, with
  ///     the same authorization, gets it without a read; see ``StagedAnswer/frame(_:)``.
  /// - Throws: ``PeerError``: `malformed` for a message that is no request.
  public func stage(
    _ message: WireMessage, access: SyncAccess = .everything,
    lookedThrough: FeedPosition = .beginning, sharing other: StagedAnswer? = nil
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
      case .attachRequest(let request):
        return StagedAnswer(.attachAnswer(try stageAttach(request, access)))
      case .fetchRequest(let request):
        let answer = ContentAnswer(bytes: try stageFetch(request, access))
        return StagedAnswer(.fetchAnswer(answer), through: request.position)
      default:
        throw PeerError(.malformed, "the message is no request")
      }
    }
  }

  /// Whether you may send a staged answer: everything in it is durable.
  public func isSettled(_ answer: StagedAnswer) -> Bool {
    feed.isSettled(through: answer.through)
  }

  /// Waits until everything in a staged answer is durable, so that you may send it. Callers on
  /// several threads share a sync.
  /// - Throws: ``PeerError`` of kind `unavailable` when the disk has failed. Then it is unknown
  ///   whether a batch that the answer confirms survives a restart.
  public func settle(_ answer: StagedAnswer) throws(PeerError) {
    try settle(through: answer.through)
  }

  func settle(through position: FeedPosition) throws(PeerError) {
    if PlantedSyncBug.isOn(.toldBeforeDurable) { return }  // a fault that only tests switch on
    do throws(TidemarkError) { try feed.settle(through: position) } catch { throw PeerError(error) }
  }

  /// Makes an answer whose range contains everything in it, and returns it once that is durable.
  func settled<Answer>(
    _ range: (Answer) -> FeedRange, _ body: () throws -> Answer
  ) throws(PeerError) -> Answer {
    let answer = try answering(body)
    try settle(through: range(answer).headPosition)
    return answer
  }

  /// Answers a request of any kind and waits until the answer is durable, for programs with a
  /// server of their own.
  /// - Parameters:
  ///   - message: the request.
  ///   - access: the entries that the caller's authorization reaches.
  /// - Throws: ``PeerError``: `malformed` for a message that is no request.
  public func answer(
    _ message: WireMessage, access: SyncAccess = .everything
  ) throws(PeerError) -> WireMessage {
    let answer = try stage(message, access: access)
    try settle(answer)
    return answer.message
  }
}

/// A page at the end of the feed, for several callers: those that the same push has woken ask for
/// the same, so it is read and encoded once. The range, the mark and the reach, which come before
/// the entries in an answer, are each caller's own.
final class SharedPage: Sendable {
  let page: PageReader
  /// The entries as they are coded in frames, for the coder that was used last.
  private let body = Lock<(coder: WireCoder, body: WireBody)?>(nil)

  /// - Returns: nil when no other caller gets this page: it does not reach the end of the feed, or
  ///   its reader wrote some of the entries and gets them as `own`.
  init?(_ page: PageReader) {
    guard page.through >= page.range.head, !page.entries.isEmpty, !page.request.ownOnly,
      !page.writers.contains(page.request.replica)
    else { return nil }
    self.page = page
  }

  /// Whether another page, before it is read, would be equal to this one. Its cursor may differ if
  /// no entry is between the two cursors.
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

  /// Codes an answer with this page as a frame.
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
