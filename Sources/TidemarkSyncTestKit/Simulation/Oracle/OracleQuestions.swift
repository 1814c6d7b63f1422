internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

extension DeviceLedger {
  /// Contents shown before do not count any more.
  func shownFromHere() { shown = newest.mapValues { [$0.content] } }

  /// It does not know any more what counts.
  func forgetCounting() {
    counting = [:]
    countingHere = [:]
  }
}

extension ResolverAnswer {
  /// Whether it says that a local write gives way to what came.
  func gives(way former: Seen, to seen: Seen, _ key: [UInt8]) -> Bool {
    guard self.key == key, Content(local) == former.content else { return false }
    switch resolution {
    case .remote, .both: return true
    case .merged(let content): return Content(content) == seen.content
    case .local, .ask: return false
    }
  }
}

extension SyncScope {
  func contains(key: [UInt8], labels: [[UInt8]]) -> Bool {
    isEverything || prefixBytes.contains { key.starts(with: $0) }
      || self.labels.contains { labels.contains($0.bytes) }
  }
}

extension WireMessage {
  /// The replica that makes a call; nil where it is none.
  var replica: ReplicaID? {
    switch self {
    case .helloRequest(let request): request.replica
    case .pushRequest(let request): request.replica
    case .pullRequest(let request): request.replica
    case .valuesRequest(let request): request.replica
    case .digestRequest(let request): request.replica
    case .attachRequest(let request): request.replica
    case .fetchRequest(let request): request.replica
    default: nil
    }
  }

  /// The mark of the caller's batches in an answer.
  var mark: ReplicaMark? {
    switch self {
    case .helloAnswer(let answer): answer.mark
    case .pushAnswer(let answer): answer.mark
    case .pullAnswer(let answer): answer.mark
    default: nil
    }
  }

  /// The reach under which an answer tells of entries; nil when it tells of none, or does not say.
  var reach: UInt64? {
    switch self {
    case .pullAnswer(let answer): answer.reach
    case .valuesAnswer(let answer): answer.reach
    case .digestAnswer(let answer): answer.reach
    default: nil
    }
  }
}
