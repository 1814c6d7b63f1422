internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

extension DeviceBook {
  /// What was shown before does not count any more.
  mutating func shownFromHere() { shown = newest.mapValues { [$0.content] } }
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
    isEverything || keyPrefixes.contains { key.starts(with: $0) }
      || self.labels.contains { labels.contains($0.bytes) }
  }
}
