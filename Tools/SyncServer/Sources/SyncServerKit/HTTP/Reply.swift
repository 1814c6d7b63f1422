internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TidemarkSyncServer

/// The answer to a request.
struct Reply: Sendable {
  var status = HTTPResponse.Status.ok
  var contentType: String
  var headers = HTTPFields()
  /// The response body, in the buffer that is written to the socket: a copy would take as much
  /// memory again for as long as a slow reader does not read it.
  var body: ByteBuffer
  /// Bytes of the body that it answers.
  var received = 0
  /// How many changes it has judged.
  var entries = 0
  /// Set where it is an error.
  var error: PeerError?

  init(_ body: [UInt8], _ coding: Coding) {
    self.body = ByteBuffer(bytes: body)
    contentType = coding.contentType
  }

  init(text: String, contentType: String, status: HTTPResponse.Status = .ok) {
    body = ByteBuffer(string: text)
    self.contentType = contentType
    self.status = status
  }

  /// An error as the caller can read it.
  init(_ problem: Problem, _ coding: Coding) {
    let message = WireMessage.error(problem.error)
    self.init((try? coding.encode(message, WireCoder())) ?? [], coding)
    status = problem.status
    headers = problem.headers
    error = problem.error
  }

  /// Sends it.
  /// - Parameter isHead: whether the body is only told of.
  func send(_ writer: consuming ResponseWriter, isHead: Bool) async throws {
    var headers = headers
    headers[.contentType] = contentType
    headers[.contentLength] = String(body.readableBytes)
    headers[.cacheControl] = "no-store"
    headers[.xContentTypeOptions] = "nosniff"
    let head = HTTPResponse(status: status, headerFields: headers)
    try await writer.write(
      response: head,
      body: isHead ? ResponseBody() : ResponseBody(byteBuffer: body))
  }
}
