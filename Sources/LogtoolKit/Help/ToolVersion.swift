internal import TidemarkEngine

/// The answer to `--version`.
enum ToolVersion {
  static let number = "0.1.0"

  static var text: String {
    "logtool \(number) (format \(FormatConstants.major).\(FormatConstants.minor), "
      + "zstd \(ZstdLibrary.version), Swift \(swift))"
  }

  /// The compiler's version, as far as it can be asked for.
  private static var swift: String {
    #if compiler(>=6.5)
      "6.5 or later"
    #elseif compiler(>=6.4)
      "6.4"
    #elseif compiler(>=6.3)
      "6.3"
    #else
      "6.2"
    #endif
  }
}
