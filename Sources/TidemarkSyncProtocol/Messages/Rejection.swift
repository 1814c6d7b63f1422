package import Tidemark

/// Why a change will never be taken.
public struct Rejection: Sendable, Hashable, Error {
  /// A short name for programs, such as `invalid` or `outOfScope`.
  public var code: String
  /// The reason, for people.
  public var message: String

  /// A reason.
  public init(code: String, message: String) {
    self.code = code
    self.message = message
  }
}

extension Rejection {
  /// Longest code and longest message that are kept, in bytes.
  package static let codeBytes = 64
  package static let messageBytes = 512

  /// For a change of what the authorization does not reach.
  package static func outOfScope(_ message: String) -> Rejection {
    Rejection(code: outOfReach, message: message)
  }

  /// The code of what lies out of the authorization's reach.
  package static let outOfReach = "outOfScope"
  /// The code of what was to apply together with something that did not.
  package static let ofGroup = "aborted"

  /// For content that is larger than a peer takes.
  package static func tooLarge(_ attachment: AttachmentReference, most: Int) -> Rejection {
    Rejection(
      code: "tooLarge",
      message: "the attachment has \(attachment.length) bytes; at most \(most) are taken")
  }

  /// The rejection with texts that are not too long to be kept.
  package var bounded: Rejection {
    var bounded = self
    bounded.code.cut(to: Self.codeBytes)
    bounded.message.cut(to: Self.messageBytes)
    return bounded
  }
}

extension String {
  /// Leaves out what does not fit, from a character's beginning on.
  mutating func cut(to limit: Int) {
    guard utf8.count > limit else { return }
    var end = utf8.index(utf8.startIndex, offsetBy: limit)
    while end.samePosition(in: unicodeScalars) == nil { end = utf8.index(before: end) }
    self = String(self[..<end])
  }
}
