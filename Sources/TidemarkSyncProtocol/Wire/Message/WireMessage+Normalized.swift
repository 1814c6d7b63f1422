internal import Tidemark
internal import TidemarkEngine

extension WireMessage {
  /// The same message as it is sent: scopes sorted, since their order has no meaning, and texts for
  /// people cut, since a peer that has too much to say must still get its answer through.
  package var normalized: WireMessage {
    switch self {
    case .helloRequest(var request):
      request.scope.normalize()
      return .helloRequest(request)
    case .pullRequest(var request):
      request.scope.normalize()
      return .pullRequest(request)
    case .digestRequest(var request):
      request.scope.normalize()
      return .digestRequest(request)
    case .helloAnswer(var answer):
      answer.mark.cutTexts()
      answer.policies.sort { $0.prefix.bytes.lexicographicallyPrecedes($1.prefix.bytes) }
      return .helloAnswer(answer)
    case .pushAnswer(var answer):
      answer.mark.cutTexts()
      return .pushAnswer(answer)
    case .pullAnswer(var answer):
      answer.mark.cutTexts()
      return .pullAnswer(answer)
    case .attachAnswer(var answer):
      answer.rejection?.code.cut(to: WireLimits.codeBytes)
      answer.rejection?.message.cut(to: WireLimits.textBytes)
      return .attachAnswer(answer)
    case .error(var error):
      error.message.cut(to: WireLimits.textBytes)
      return .error(error)
    case .pushRequest, .valuesRequest, .valuesAnswer, .digestAnswer, .downloadRequest,
      .downloadAnswer, .attachRequest, .fetchRequest, .fetchAnswer:
      return self
    }
  }

  /// About how many bytes it takes, to set aside at once.
  var sizeHint: Int {
    switch self {
    case .pushRequest(let request):
      request.changes.reduce(256) { $0 + 48 + $1.key.count + $1.content.value.count }
    case .pushAnswer(let answer): Self.sizeHint(answer.current)
    case .pullAnswer(let answer): Self.sizeHint(answer.entries)
    case .valuesAnswer(let answer): Self.sizeHint(answer.entries)
    case .downloadAnswer(let answer): 128 + answer.bytes.count
    case .attachRequest(let request): 128 + request.key.count + request.bytes.count
    case .fetchAnswer(let answer): 128 + (answer.bytes?.count ?? 0)
    default: 512
    }
  }

  private static func sizeHint(_ entries: [FeedEntry]) -> Int {
    entries.reduce(512) { $0 + 48 + $1.key.count + $1.content.value.count }
  }
}

extension SyncScope {
  fileprivate mutating func normalize() {
    labels = labels.sorted().withoutRepeats()
    prefixBytes = prefixBytes.sorted { $0.lexicographicallyPrecedes($1) }.withoutRepeats()
  }
}

extension Array where Element: Equatable {
  /// Each once, if they are sorted.
  fileprivate func withoutRepeats() -> [Element] {
    var result: [Element] = []
    for element in self where element != result.last { result.append(element) }
    return result
  }
}

extension ReplicaMark {
  fileprivate mutating func cutTexts() {
    var left = WireLimits.markTextBytes
    var last: Rejection?
    for index in verdicts.indices {
      guard case .rejected(var rejection) = verdicts[index] else { continue }
      rejection.code.cut(to: WireLimits.codeBytes)
      rejection.message.cut(to: WireLimits.textBytes)
      // One that repeats the last travels once.
      if rejection.message != last?.message {
        if rejection.message.utf8.count > left { rejection.message = "" }
        left -= rejection.message.utf8.count
      }
      last = rejection
      verdicts[index] = .rejected(rejection)
    }
  }
}
