variable "name" {
  type        = string
  description = "The name prefix of every resource."
  default     = "harbour"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}$", var.name))
    error_message = "The name starts with a letter and has only a-z, 0-9 and hyphens, 31 characters at most."
  }
}

variable "zones" {
  type        = list(string)
  description = "The zones that the pretend network spans."
  default     = ["a", "b", "c"]
}

variable "services" {
  type        = map(number)
  description = "Pretend services, each with its number of replicas."
  default = {
    checkout  = 3
    catalogue = 2
    search    = 2
  }
}

variable "delay" {
  type        = number
  description = "The approximate seconds that each resource takes to create."
  default     = 1

  validation {
    condition     = var.delay >= 0 && var.delay <= 60
    error_message = "The delay is between 0 and 60 seconds."
  }
}
