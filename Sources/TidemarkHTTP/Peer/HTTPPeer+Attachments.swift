internal import Tidemark
internal import TidemarkEngine
public import TidemarkSyncProtocol

/// Contents travel in parts, of which each is a call: see ``BlobTransfer`` for how large they are.
extension HTTPPeer {
  /// Hands over a part of a content, or the beginning of it where parts have to be
  /// small.
  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    var request = request
    let rest = request.attachment.length - request.offset
    let most = transfer.withLock { $0.pieceBytes }
    if request.bytes.count > most { request.bytes = Array(request.bytes.prefix(most)) }
    let count = request.bytes.count
    let answer =
      count == 0
      ? try await call("attach", .attachRequest(request))
      : try await timed(count) {
        do { return try await call("attach", .attachRequest(request)) } catch let error as PeerError
          where error.kind == .malformed && count > AttachRequest.partBytes
        {
          // It may be too large for something in between, and the next one is smaller.
          throw PeerError(.unavailable, error.message)
        }
      }
    guard case .attachAnswer(let answer) = answer, answer.received <= request.offset + rest else {
      throw Self.wrongAnswer
    }
    return answer
  }

  /// Reads a part of an attachment's content.
  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    var request = request
    request.limit = min(request.limit, transfer.withLock { $0.fetchPieceBytes })
    let count = min(request.limit, max(0, request.attachment.length - request.offset))
    let answer = try await timed(count) { try await call("fetch", .fetchRequest(request)) }
    guard case .fetchAnswer(let part) = answer, (part.bytes?.count ?? 0) <= request.limit else {
      throw Self.wrongAnswer
    }
    return part
  }
}

extension BlobTransfer {
  /// How many bytes of an attachment the next part that is sent has at most: whole pieces.
  var pieceBytes: Int { Self.whole(sendBytes) }
  /// The same of one that is fetched.
  var fetchPieceBytes: Int { Self.whole(min(fetchBytes, AttachRequest.mostBytes)) }

  static func whole(_ bytes: Int) -> Int {
    max(AttachRequest.partBytes, bytes / AttachRequest.partBytes * AttachRequest.partBytes)
  }
}
