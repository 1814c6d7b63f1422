package import Tidemark

/// Why a peer refuses a change for good: a code for programs and a message for people.
public struct SyncRejection: Sendable, Hashable, Error {
  /// A short name for programs, such as `invalid` or `outOfScope`.
  public var code: String
  /// The reason of the refusal, as a text for people.
  public var message: String

  /// Creates the reason of a refusal.
  /// - Parameters:
  ///   - code: a short name for programs, such as `invalid`.
  ///   - message: the reason, as a text for people.
  public init(code: String, message: String) {
    self.code = code
    self.message = message
  }
}

extension SyncRejection {
  /// Most bytes of a code and of a message that a feed stores; longer ones are cut.
  package static let codeBytes = 64
  package static let messageBytes = 512

  /// For a change of a key that the authorization does not reach.
  package static func outOfScope(_ message: String) -> SyncRejection {
    SyncRejection(code: outOfReach, message: message)
  }

  /// The code for a key out of the authorization's reach.
  package static let outOfReach = "outOfScope"
  /// The code for a change whose atomic group has another one that did not apply.
  package static let ofGroup = "aborted"

  /// For content that is larger than a peer accepts.
  package static func tooLarge(_ attachment: AttachmentReference, most: Int) -> SyncRejection {
    SyncRejection(
      code: "tooLarge",
      message: "the attachment has \(attachment.length) bytes; at most \(most) are taken")
  }

  /// The rejection with its texts cut to what is stored.
  package var bounded: SyncRejection {
    var bounded = self
    bounded.code.cut(to: Self.codeBytes)
    bounded.message.cut(to: Self.messageBytes)
    return bounded
  }
}

extension String {
  /// Cuts the text to at most `limit` bytes of UTF-8, at a Unicode scalar's boundary.
  mutating func cut(to limit: Int) {
    guard utf8.count > limit else { return }
    var end = utf8.index(utf8.startIndex, offsetBy: limit)
    while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    self = String(self[..<end])
  }
}
