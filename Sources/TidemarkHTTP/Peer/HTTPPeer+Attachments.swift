internal import Tidemark
internal import TidemarkEngine
public import TidemarkSyncProtocol

/// Content is sent and fetched in parts, one call each: see ``BlobTransfer`` for their sizes.
extension HTTPPeer {
  /// Uploads a part of an attachment or of a large value to the server. After failures it may send
  /// only the beginning of the part; the answer tells how much the server has.
  public func attach(_ request: AttachRequest) async throws -> AttachAnswer {
    var request = request
    let rest = request.attachment.length - request.offset
    let most = transfer.withLock { $0.uploadBytes }
    if request.bytes.count > most { request.bytes = Array(request.bytes.prefix(most)) }
    let count = request.bytes.count
    let answer =
      count == 0
      ? try await call("attach", .attachRequest(request))
      : try await timed(count) {
        do { return try await call("attach", .attachRequest(request)) } catch let error as PeerError
          where error.kind == .malformed && count > AttachRequest.partBytes
        {
          // It may be too large for a proxy; `unavailable` makes the caller retry, with less.
          throw PeerError(.unavailable, error.message)
        }
      }
    guard case .attachAnswer(let answer) = answer, answer.received <= request.offset + rest else {
      throw Self.wrongAnswer
    }
    return answer
  }

  /// Downloads a part of an attachment or of a large value from the server.
  public func fetch(_ request: ContentRequest) async throws -> ContentAnswer {
    var request = request
    request.limit = min(request.limit, transfer.withLock { $0.fetchBytes })
    let count = min(request.limit, max(0, request.attachment.length - request.offset))
    let answer = try await timed(count) { try await call("fetch", .fetchRequest(request)) }
    guard case .fetchAnswer(let part) = answer, (part.bytes?.count ?? 0) <= request.limit else {
      throw Self.wrongAnswer
    }
    return part
  }
}
