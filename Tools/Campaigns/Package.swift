// swift-tools-version: 6.2
import PackageDescription

// Campaigns over encrypted stores need a build with encryption, which takes minutes longer.
let encrypts = Context.environment["TIDEMARK_ENCRYPTED"] == "1"

// The long campaigns against the store; `Tools/torture` builds and runs them.
let package = Package(
  name: "campaigns",
  platforms: [.macOS(.v15)],
  products: [.executable(name: "torture", targets: ["torture"])],
  dependencies: [
    .package(name: "tidemark", path: "../..", traits: encrypts ? ["Encryption"] : []),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
  ],
  targets: [
    .executableTarget(
      name: "torture",
      dependencies: [
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkTestKit", package: "tidemark"),
        .product(name: "TidemarkSyncTestKit", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .treatAllWarnings(as: .error),
      ])
  ],
  swiftLanguageModes: [.v6]
)
