internal import Tidemark
package import TidemarkEngine

extension WireMessage {
  /// Checks that the message keeps to the bounds of the protocol.
  /// - Parameter normalizes: whether to check the form in which it is sent, see ``normalized``.
  package func check(normalizes: Bool = false) throws(FormatError) {
    var (message, visitor) = (self, WireVisitor(FrameCursor(), normalizes: normalizes))
    try message.visit(&visitor)
  }

  /// The message in the form in which it is sent: lists in order, and texts for people cut.
  package var normalized: WireMessage {
    var (message, visitor) = (self, WireVisitor(FrameCursor()))
    // An error is ignored: coding the message would throw it again.
    try? message.visit(&visitor)
    return message
  }

  /// An empty message of a kind, into which a reader decodes.
  init(blank kind: Kind) {
    let range = FeedRange(epochs: [], head: 0)
    let none = ReplicaID.none
    self =
      switch kind {
      case .helloRequest: .helloRequest(HelloRequest(replica: none))
      case .helloAnswer:
        .helloAnswer(HelloAnswer(feed: none, range: range, mark: ReplicaMark(), time: 0))
      case .pushRequest:
        .pushRequest(PushRequest(replica: none, number: 0, batchID: .none, changes: []))
      case .pushAnswer: .pushAnswer(PushAnswer(mark: ReplicaMark(), range: range))
      case .pullRequest: .pullRequest(PullRequest(replica: none, after: .beginning))
      case .pullAnswer:
        .pullAnswer(
          PullAnswer(entries: [], cursor: .beginning, range: range, mark: ReplicaMark()))
      case .valuesRequest: .valuesRequest(ValuesRequest(replica: none, keys: []))
      case .valuesAnswer: .valuesAnswer(ValuesAnswer(entries: [], answered: 0, range: range))
      case .digestRequest: .digestRequest(DigestRequest(replica: none))
      case .digestAnswer:
        .digestAnswer(DigestAnswer(position: .beginning, range: range, parts: []))
      case .downloadRequest:
        .downloadRequest(
          DownloadRequest(replica: none, position: .beginning, offset: 0, limit: 0))
      case .downloadAnswer: .downloadAnswer(DownloadAnswer(length: 0, bytes: []))
      case .attachRequest:
        .attachRequest(
          AttachRequest(replica: none, key: [], attachment: .blank, offset: 0, bytes: []))
      case .attachAnswer: .attachAnswer(AttachAnswer(received: 0, range: range))
      case .fetchRequest:
        .fetchRequest(
          ContentRequest(replica: none, key: [], attachment: .blank, offset: 0, limit: 0))
      case .fetchAnswer: .fetchAnswer(ContentAnswer(bytes: nil))
      case .error: .error(PeerError(.failed, ""))
      }
  }

  mutating func visit(_ v: inout WireVisitor) throws(FormatError) {
    self =
      switch self {
      case .helloRequest(let part): .helloRequest(try v.visited(part))
      case .helloAnswer(let part): .helloAnswer(try v.visited(part))
      case .pushRequest(let part): .pushRequest(try v.visited(part))
      case .pushAnswer(let part): .pushAnswer(try v.visited(part))
      case .pullRequest(let part): .pullRequest(try v.visited(part))
      case .pullAnswer(let part): .pullAnswer(try v.visited(part))
      case .valuesRequest(let part): .valuesRequest(try v.visited(part))
      case .valuesAnswer(let part): .valuesAnswer(try v.visited(part))
      case .digestRequest(let part): .digestRequest(try v.visited(part))
      case .digestAnswer(let part): .digestAnswer(try v.visited(part))
      case .downloadRequest(let part): .downloadRequest(try v.visited(part))
      case .downloadAnswer(let part): .downloadAnswer(try v.visited(part))
      case .attachRequest(let part): .attachRequest(try v.visited(part))
      case .attachAnswer(let part): .attachAnswer(try v.visited(part))
      case .fetchRequest(let part): .fetchRequest(try v.visited(part))
      case .fetchAnswer(let part): .fetchAnswer(try v.visited(part))
      case .error(let part): .error(try v.visited(part))
      }
  }

  /// About how many bytes it needs, to reserve them at once.
  var sizeHint: Int {
    switch self {
    case .pushRequest(let request):
      request.changes.reduce(256) { $0 + 48 + $1.key.count + $1.content.value.count }
    case .downloadAnswer(let answer): 128 + answer.bytes.count
    case .attachRequest(let request): 128 + request.key.count + request.bytes.count
    case .fetchAnswer(let answer): 128 + (answer.bytes?.count ?? 0)
    default: entries.reduce(512) { $0 + 48 + $1.key.count + $1.content.value.count }
    }
  }
}

extension WireVisitor {
  fileprivate mutating func visited<T: WirePart>(_ part: T) throws(FormatError) -> T {
    var part = part
    try part.visit(&self)
    return part
  }
}
