/// A setting with which the server cannot start.
public struct SettingsError: Error, CustomStringConvertible {
  /// What is wrong, for people.
  public let description: String

  init(_ description: String) { self.description = description }
}
