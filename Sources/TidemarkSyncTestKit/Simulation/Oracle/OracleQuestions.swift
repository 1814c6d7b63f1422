internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

extension DeviceBook {
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

extension SyncSession.Call {
  /// The replica that makes it.
  var replica: ReplicaID {
    switch self {
    case .hello(let request): request.replica
    case .push(let request): request.replica
    case .pull(let request): request.replica
    case .values(let request): request.replica
    case .digest(let request): request.replica
    case .attach(let request): request.replica
    case .fetch(let request): request.replica
    }
  }
}

extension SyncSession.Answer {
  /// The range of the feed in the answer; nil where it says nothing of that.
  var range: FeedRange? {
    switch self {
    case .hello(let answer): answer.range
    case .push(let answer): answer.range
    case .pull(let answer): answer.range
    case .values(let answer): answer.range
    case .digest(let answer): answer.range
    case .attach(let answer): answer.range
    case .fetch: nil
    }
  }

  /// The mark of the caller's batches in the answer.
  var mark: ReplicaMark? {
    switch self {
    case .hello(let answer): answer.mark
    case .push(let answer): answer.mark
    case .pull(let answer): answer.mark
    case .values, .digest, .attach, .fetch: nil
    }
  }

  /// The reach under which it tells of entries; nil when it tells of none, or does not say.
  var reach: UInt64? {
    switch self {
    case .pull(let answer): answer.reach
    case .values(let answer): answer.reach
    case .digest(let answer): answer.reach
    case .hello, .push, .attach, .fetch: nil
    }
  }
}
