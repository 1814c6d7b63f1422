/// Why the server cannot start.
public struct SettingsError: Error, CustomStringConvertible {
  /// The kind of reason, with the exit status that `sysexits.h` has for it.
  public enum Kind: Int32, Sendable {
    /// A setting is invalid.
    case setting = 78
    /// A file of the settings cannot be read.
    case unreadable = 66
    /// The port is in use, or the address is not one of this machine.
    case unavailable = 69
    /// The data directory cannot be created or used.
    case unusable = 73
    /// The system does not allow it.
    case forbidden = 77
  }

  /// The reason and what to do, for people: one line.
  public let description: String
  /// The kind of reason.
  public let kind: Kind

  init(_ description: String, _ kind: Kind = .setting) {
    self.description = description
    self.kind = kind
  }
}
