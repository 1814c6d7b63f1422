internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Keeps the encoded body of the batch that is likely to be pushed next. Batches with the same
/// replica, number and id are the same.
final class PreparedBody: Sendable {
  private struct Name: Equatable {
    var replica: ReplicaID
    var number: UInt64
    var id: BatchID

    init(_ request: PushRequest) {
      replica = request.replica
      number = request.number
      id = request.batchID
    }
  }

  private let kept = Lock<(name: Name, body: [UInt8])?>(nil)

  func keep(_ request: PushRequest, _ body: [UInt8]) {
    kept.withLock { $0 = (Name(request), body) }
  }

  /// Removes and returns the body of a batch; that of any other batch is discarded.
  func take(_ request: PushRequest) -> [UInt8]? {
    let found = kept.withLock { kept in
      defer { kept = nil }
      return kept
    }
    guard let found, found.name == Name(request) else { return nil }
    return found.body
  }
}
